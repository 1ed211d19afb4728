"""`jaxenc convert --check`: compares the outputs of a converted model with those of transformers, where it is installed."""

import dataclasses
import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.convert import hf
from jaxenc.data.batch import Batch
from jaxenc.errors import UserError
from jaxenc.families.foreign import Export, class_of
from jaxenc.inference.load import Model
from jaxenc.training.run import Run

# Relative to the largest number of an output, or to 1 where that is smaller. Two float32 programs that sum in different orders differ by
# about 1e-6; the smallest real mistake, the other form of GELU, makes a difference of about 1e-3.
TOLERANCE = 1e-5
LONGEST = 33  # odd, so that no row falls on a multiple of anything
NEEDED = ("torch", "transformers")
# PyPI has no torch without CUDA; its makers' own index has it.
INSTALL = "pip install -e '.[live]' --extra-index-url https://download.pytorch.org/whl/cpu"


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference of one output. largest: maximum absolute difference; scale: largest absolute number of transformers' output."""

    name: str
    largest: float
    scale: float

    @property
    def within(self) -> bool:
        """Whether TOLERANCE holds; a NaN does not."""
        return self.largest <= TOLERANCE * max(1.0, self.scale)


def must_be_installed() -> None:
    """Raises UserError where torch or transformers is not installed; call it before any long work."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"--check needs transformers, and {' and '.join(missing)} cannot be imported: {INSTALL}")


def compare(model: Model, folder: Path) -> list[Difference]:
    """The differences of all hidden states and of each head's output between `model` and the model that transformers opens in `folder`.

    On fixed pseudo-random rows, with padding on the family's side and two token types where the model has them; padding places are compared
    too. Both models compute in float32.
    """
    out = []
    for place, part in hf.models(model).items():
        export = hf.export(part)
        rows = probe(part.config, export.config["pad_token_id"], export.padding)
        ours = part.apply(part.params, rows)
        theirs = _theirs(folder / place, export, rows, typed=part.config.model.types > 0)
        found = {name: (np.asarray(ours[name]), value) for name, value in theirs.items()}
        out += [_difference(f"{place} {name}".lstrip(), *pair) for name, pair in found.items()]
    return out


def probe(run: Run, pad: int, padding: str) -> Batch:
    """The rows to compare, a batch for `Model.apply`. Padding is on the side `padding`; only padding has the id `pad`."""
    random, length = np.random.Generator(np.random.Philox(3)), min(LONGEST, run.model.positions or LONGEST)
    lengths = np.array([length, length, 2 * length // 3 or 1, 1])[:, None]
    places = np.arange(length) - (length - lengths if padding == "left" else 0)
    words = np.setdiff1d(np.arange(run.model.vocab_size), [pad])
    real = (places >= 0) & (places < lengths)
    tokens = np.where(real, random.choice(words, (len(lengths), length)), pad)
    types = real & (places >= (lengths + 1) // 2) & (run.model.types > 1)
    batch = {"tokens": tokens, "types": types, "segments": real}
    return {name: value.astype(np.int32) for name, value in batch.items()}


def table(differences: Sequence[Difference]) -> str:
    """The differences as a table to print."""
    wide = max(len(one.name) for one in differences)
    lines = [f"{'':{wide}}{'difference':>12}{'scale':>10}"]
    for one in differences:
        lines.append(f"{one.name:{wide}}{one.largest:12.1e}{one.scale:10.3g}{'' if one.within else '  beyond the tolerance'}")
    return "\n".join([*lines, f"tolerance: {TOLERANCE:g} of the scale, or of 1 where that is smaller"])


def _difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> Difference:
    # A class may leave out an axis of one class.
    largest = np.abs(ours.astype(np.float64) - theirs.reshape(ours.shape)).max()
    return Difference(name.replace("hidden", "hidden states"), float(largest), float(np.abs(theirs).max()))


def _theirs(folder: Path, export: Export, rows: Batch, typed: bool) -> dict[str, np.ndarray]:
    """{our name of an output: what the class of transformers that `export` names computes}. typed: the model has token types."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    refused = f"{folder}: transformers {transformers.__version__} does not open it"
    opens, level = getattr(transformers, class_of(export.config)), transformers.utils.logging.get_verbosity()
    choices: dict[str, Any] = {"dtype": torch.float32, "local_files_only": True, "output_loading_info": True}
    if "add_pooling_layer" in inspect.signature(opens).parameters and "pooled" not in export.outputs:
        choices["add_pooling_layer"] = False
    if "id2label" in export.config:
        # A multiple-choice folder may name two labels although the model has one output.
        choices |= {name: export.config[name] for name in ("id2label", "label2id")}
    try:
        # Missing names are reported below, in one line, instead of by transformers.
        transformers.utils.logging.set_verbosity_error()
        model, loading = opens.from_pretrained(folder, **choices)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{refused}, so nothing was compared: {reason}") from error
    finally:
        transformers.utils.logging.set_verbosity(level)
    if loading["missing_keys"]:
        # transformers initialises missing parameters at random.
        raise UserError(f"{refused} completely, so nothing was compared: it does not find {min(loading['missing_keys'])}")
    model.eval()
    arguments = {"input_ids": rows["tokens"], "attention_mask": rows["segments"]}
    if typed:
        # A class whose model has none may read them as something else.
        arguments["token_type_ids"] = rows["types"]
    if export.last_token:
        arguments[export.last_token] = rows["segments"].sum(axis=1) - 1
    with torch.no_grad():
        out = model(**{name: torch.tensor(value, dtype=torch.int64) for name, value in arguments.items()}, output_hidden_states=True)
    found = {"hidden": torch.stack(out.hidden_states)}
    for name, attributes in export.outputs.items():
        parts = [out[attribute] for attribute in attributes]
        found[name] = parts[0] if len(parts) == 1 else torch.stack(parts, dim=-1)
    return {name: value.numpy() for name, value in found.items()}
