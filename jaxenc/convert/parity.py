"""`jaxenc convert --check`: how far a converted model's numbers are from those that transformers computes, where it is installed."""

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.convert import bert_config
from jaxenc.data.batch import Batch
from jaxenc.errors import UserError
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.heads import NAMES
from jaxenc.pretrained import Model

# Of the largest number of an output, or of 1 where that is smaller. Two float32 programs that sum in another order differ by about 1e-6
# of it; the mildest mistake there is, the other form of GELU, by about 1e-3.
TOLERANCE = 1e-5
LONGEST = 33  # odd, so that no row falls on a multiple of anything
NEEDED = ("torch", "transformers")
# By the ending of a class: {our output: attributes of its output}.
LOGITS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Model": {"pooled": ("pooler_output",)},
    "ForPreTraining": {"mlm": ("prediction_logits",), "next_sentence": ("seq_relationship_logits",)},
    "ForMaskedLM": {"mlm": ("logits",)},
    "ForNextSentencePrediction": {"next_sentence": ("logits",)},
    "ForSequenceClassification": {"classifier": ("logits",)},
    "ForTokenClassification": {"tags": ("logits",)},
    "ForQuestionAnswering": {"spans": ("start_logits", "end_logits")},
}


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of one output. largest: maximum absolute difference; scale: largest absolute number that transformers computed."""

    name: str
    largest: float
    scale: float

    @property
    def within(self) -> bool:
        """Whether TOLERANCE holds; a NaN does not."""
        return self.largest <= TOLERANCE * max(1.0, self.scale)


def require() -> None:
    """Raises UserError where torch or transformers is missing: to be called before anything long begins."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"--check compares with transformers, and {' and '.join(missing)} cannot be imported: pip install 'jaxenc[live]'")


def compare(model: Model, folder: Path) -> list[Difference]:
    """The differences of every hidden state and of each head's logits from those of the model that transformers opens in `folder`.

    On fixed pseudo-random rows, padded at the end, of two types where there are two; at padded places too. Both in float32.
    """
    heads = [name for name in NAMES if name in model.params]
    vocabulary = model.tokenizer.vocabulary if model.tokenizer else None
    architecture = bert_config.config_json(model.config, heads, vocabulary, "float32")["architectures"][0]
    rows = probe(model.config.model)
    ours = model.apply(model.params, rows)
    theirs = _theirs(folder, architecture, rows, "pooler" in heads)
    return [_difference(name, np.asarray(ours[name]), value) for name, value in theirs.items() if name in ours]


def probe(config: BertConfig) -> Batch:
    """The rows that are compared: a batch of `Model.apply`."""
    random, length = np.random.Generator(np.random.Philox(3)), min(LONGEST, config.positions)
    lengths, places = np.array([length, length, 2 * length // 3 or 1, 1])[:, None], np.arange(length)
    pad = config.first_position - 1
    words = np.setdiff1d(np.arange(config.vocab_size), [pad])
    real = places < lengths
    tokens = np.where(real, random.choice(words, (len(lengths), length)), max(pad, 0))
    types = real & (places >= (lengths + 1) // 2) & (config.types > 1)
    batch = {"tokens": tokens, "types": types, "segments": real}
    return {name: value.astype(np.int32) for name, value in batch.items()}


def table(differences: Sequence[Difference]) -> str:
    """Lines to print."""
    lines = [f"{'':16}{'difference':>12}{'scale':>10}"]
    for one in differences:
        lines.append(f"{one.name:16}{one.largest:12.1e}{one.scale:10.3g}{'' if one.within else '  beyond the tolerance'}")
    return "\n".join([*lines, f"tolerance: {TOLERANCE:g} of the scale, or of 1 where that is smaller"])


def _difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> Difference:
    largest = np.abs(ours.astype(np.float64) - theirs).max()
    return Difference("hidden states" if name == "hidden" else name, float(largest), float(np.abs(theirs).max()))


def _theirs(folder: Path, architecture: str, rows: Batch, pooler: bool) -> dict[str, np.ndarray]:
    """{our name of an output: what the class `architecture` of transformers computes}."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    ending = next(ending for ending in LOGITS if architecture.endswith(ending))
    refused = f"{folder}: transformers {transformers.__version__} does not open it"
    choices: dict[str, Any] = {} if ending != "Model" else {"add_pooling_layer": pooler}
    level = transformers.utils.logging.get_verbosity()
    try:
        # Its list of missing names is ours to judge, in one line.
        transformers.utils.logging.set_verbosity_error()
        opened = getattr(transformers, architecture).from_pretrained
        model, told = opened(folder, dtype=torch.float32, local_files_only=True, output_loading_info=True, **choices)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{refused}, so nothing was compared: {reason}") from error
    finally:
        transformers.utils.logging.set_verbosity(level)
    if told["missing_keys"]:
        # It fills in random numbers where it does not know the names.
        raise UserError(f"{refused} whole, so nothing was compared: it does not find {min(told['missing_keys'])}")
    model.eval()
    arguments = {"input_ids": rows["tokens"], "attention_mask": rows["segments"], "token_type_ids": rows["types"]}
    with torch.no_grad():
        out = model(**{name: torch.tensor(value, dtype=torch.int64) for name, value in arguments.items()}, output_hidden_states=True)
    found = {"hidden": torch.stack(out.hidden_states)}
    for name, attributes in LOGITS[ending].items():
        parts = [out[attribute] for attribute in attributes]
        if parts[0] is not None:
            found[name] = parts[0] if len(parts) == 1 else torch.stack(parts, dim=-1)
    return {name: value.numpy() for name, value in found.items()}
