"""`jaxenc convert --check`: compares the outputs of a converted model with those of transformers, where it is installed."""

import dataclasses
import importlib.util
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.convert import hf
from jaxenc.data.batch import Batch
from jaxenc.errors import UserError
from jaxenc.families.foreign import Export, class_of
from jaxenc.inference.model import Model
from jaxenc.training.run import Run

# Relative to the largest number of an output, or to 1 where that is smaller. float32 programs are about 1e-6 from float64, transformers'
# at times 6e-5 (measured on rows of one token); the smallest real mistake, the other form of GELU, makes a difference of about 1e-3.
TOLERANCE = 1e-5
LONGEST = 33  # odd, so that no row falls on a multiple of anything
NEEDED = ("torch", "transformers")
# PyPI has no torch without CUDA; its makers' own index has it.
INSTALL = "pip install 'jaxenc[live]' --extra-index-url https://download.pytorch.org/whl/cpu"


class Incomplete(UserError):
    """A folder in which transformers does not find all parameters under the names that it knows."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far one output is from that of transformers in float64. ours, theirs: the maximum absolute difference of our float32 output and
    of transformers' own; scale: largest absolute number of the output in float64, or 1 where that is smaller. Distances divided by it are
    `of the scale`."""

    name: str
    ours: float
    theirs: float
    scale: float

    @property
    def within(self) -> bool:
        """Whether TOLERANCE holds for ours; a NaN does not. That transformers' own float32 is further away is not our fault."""
        return self.ours <= TOLERANCE * self.scale


def must_be_installed() -> None:
    """Raises UserError where torch or transformers is not installed; call it before any long work."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"needs transformers, and {' and '.join(missing)} cannot be imported", "--check", INSTALL)


def compare(model: Model, folder: Path) -> list[Difference]:
    """The differences of all hidden states and of each head's output between `model` and the model that transformers opens in `folder`.

    On fixed pseudo-random rows, with padding on the family's side and two token types where the model has them; padding places are compared
    too. Ours computes in float32; transformers in float64 and, to compare, in float32. Raises UserError as transformers, and Incomplete.
    """
    out = []
    for place, part in hf.models(model).items():
        export = hf.export(part)
        rows = probe(part.config, export.config["pad_token_id"], export.padding)
        ours = part.apply(part.params, rows)
        theirs = _theirs(folder / place, export, rows, typed=part.config.model.types > 0)
        out += [_difference(f"{place} {name}".lstrip(), np.asarray(ours[name]), *both) for name, both in theirs.items()]
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
    lines = ["distance from transformers in float64, of the scale:", f"{'':{wide}}{'jaxenc':>10}{'transformers':>14}{'scale':>10}"]
    for one in differences:
        ours, theirs = one.ours / one.scale, one.theirs / one.scale
        lines.append(f"{one.name:{wide}}{ours:10.1e}{theirs:14.1e}{one.scale:10.3g}{'' if one.within else '  beyond the tolerance'}")
    return "\n".join([*lines, f"tolerance: {TOLERANCE:g} of the scale; both columns are in float32"])


def _difference(name: str, ours: np.ndarray, theirs: np.ndarray, exact: np.ndarray) -> Difference:
    # A class may leave out an axis of one class.
    distance = lambda found: float(np.abs(found.astype(np.float64) - exact.reshape(found.shape)).max())
    return Difference(name.replace("hidden", "hidden states"), distance(ours), distance(theirs), max(1.0, float(np.abs(exact).max())))


def _theirs(folder: Path, export: Export, rows: Batch, typed: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{our name of an output: what the class of transformers that `export` names computes, in float32 and in float64}. typed: the model
    has token types."""
    arguments = {"input_ids": rows["tokens"], "attention_mask": rows["segments"]}
    if typed:
        # A class whose model has none may read them as something else.
        arguments["token_type_ids"] = rows["types"]
    if class_of(export.config).endswith("ForMultipleChoice"):
        arguments = {name: value[:, None] for name, value in arguments.items()}
    if export.last_token:
        arguments[export.last_token] = rows["segments"].sum(axis=1) - 1
    model = _opened(folder, export)
    single = _outputs(model, arguments, export)
    # The weights are the same numbers: they were read as float32, which holds every half-precision number.
    exact = _outputs(model.double(), arguments, export)
    return {name: (value, exact[name]) for name, value in single.items()}


def _opened(folder: Path, export: Export) -> Any:
    """The model of transformers in `folder`, in float32. Raises UserError where transformers does not open it, Incomplete where it opens
    a part of it."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    refused = f"transformers {transformers.__version__} does not open it"
    opens, level = getattr(transformers, class_of(export.config)), transformers.utils.logging.get_verbosity()
    choices: dict[str, Any] = {"dtype": torch.float32, "local_files_only": True, "output_loading_info": True}
    if "add_pooling_layer" in inspect.signature(opens).parameters and "pooled" not in export.outputs:
        choices["add_pooling_layer"] = False
    if "id2label" in export.config:
        # A folder may name other labels than its tensors have.
        choices |= {name: export.config[name] for name in ("id2label", "label2id")}
    try:
        # Missing names are reported below, in one line, instead of by transformers.
        transformers.utils.logging.set_verbosity_error()
        model, loading = opens.from_pretrained(folder, **choices)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{refused} ({reason})", folder, "leave out --check") from error
    finally:
        transformers.utils.logging.set_verbosity(level)
    if loading["missing_keys"]:
        # transformers initialises missing parameters at random.
        raise Incomplete(f"{refused} completely: it does not find {min(loading['missing_keys'])}", folder, "leave out --check")
    return model.eval()


def _outputs(model: Any, arguments: Mapping[str, np.ndarray], export: Export) -> dict[str, np.ndarray]:
    """{our name of an output: its value} of a model of transformers, in the model's dtype."""
    import torch

    with torch.no_grad():
        out = model(**{name: torch.tensor(value, dtype=torch.int64) for name, value in arguments.items()}, output_hidden_states=True)
    found = {"hidden": torch.stack(out.hidden_states)}
    for name, attributes in export.outputs.items():
        parts = [out[attribute] for attribute in attributes]
        found[name] = parts[0] if len(parts) == 1 else torch.stack(parts, dim=-1)
    return {name: value.numpy() for name, value in found.items()}
