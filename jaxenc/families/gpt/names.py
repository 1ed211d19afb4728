"""The names of GPT's parameters in the files of transformers."""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from jaxenc.families.gpt.model import GptConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import Entry, Part
from jaxenc.heads import BUILT_IN
from jaxenc.layers.stack import layer_name


class GptPart(NamedTuple):
    """A group of leaves: the head that it belongs to ('' for the encoder), our path, their name, and its kind: one of `leaves.LEAVES`,
    `conv1d` or `packed`. `{n}` is a layer's number, `{layer}` our name for it; the encoder's names get the base of the file."""

    head: str
    ours: str
    theirs: str
    kind: str


PARTS = (
    GptPart("", "embeddings/token/table", "tokens_embed", "vocabulary"),
    GptPart("", "embeddings/position/table", "positions_embed", "table"),
    GptPart("", "encoder/{layer}/attention", "h.{n}.attn.c_attn", "packed"),
    GptPart("", "encoder/{layer}/attention/output", "h.{n}.attn.c_proj", "conv1d"),
    GptPart("", "encoder/{layer}/attention/norm", "h.{n}.ln_1", "norm"),
    GptPart("", "encoder/{layer}/feed_forward/up", "h.{n}.mlp.c_fc", "conv1d"),
    GptPart("", "encoder/{layer}/feed_forward/down", "h.{n}.mlp.c_proj", "conv1d"),
    GptPart("", "encoder/{layer}/feed_forward/norm", "h.{n}.ln_2", "norm"),
    GptPart("choice", "choice/dense", "multiple_choice_head.summary", "dense"),
)
# What `c_attn` holds side by side on its last axis.
PACKED = ("query", "key", "value")
# The tied softmax, which files may hold a second time or in the place of the table.
SOFTMAX = "lm_head.weight"
BASE = "transformer."


def file_base(names: Collection[str]) -> str:
    """The prefix of the encoder's names: `transformer.`, or '' in a file of the encoder alone and in the first published ones."""
    return BASE if any(name.startswith(BASE) for name in names) else ""


def entries(config: GptConfig, heads: Collection[str], base: str) -> tuple[Entry, ...]:
    """The key map of one model: the encoder and `heads` (built-in ones), in the order of PARTS."""
    return tuple(entry for part in PARTS if part.head in ("", *heads) for entry in _of_part(part, config, base))


def _of_part(part: GptPart, config: GptConfig, base: str) -> Iterator[Entry]:
    for n in range(config.layers if "{n}" in part.theirs else 1):
        ours, theirs = part.ours.format(layer=layer_name(n)), ("" if part.head else base) + part.theirs.format(n=n)
        if part.kind == "conv1d":
            # transformers' Conv1D has its kernel as [in, out], like ours.
            yield from (Entry(f"{theirs}.weight", f"{ours}/kernel"), Entry(f"{theirs}.bias", f"{ours}/bias"))
        elif part.kind == "packed":
            for index, name in enumerate(PACKED):
                place = Part(index, len(PACKED))
                yield Entry(f"{theirs}.weight", f"{ours}/{name}/kernel", part=place)
                yield Entry(f"{theirs}.bias", f"{ours}/{name}/bias", part=place)
        else:
            copies = {"embeddings/token/table": SOFTMAX}
            yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, False, False, copies)


def heads_of(names: Collection[str], architecture: str) -> tuple[str, ...]:
    """The heads of a file with the tensors `names`, in the order of `heads.BUILT_IN`.

    architecture: the class that transformers saved, or ''. The tied softmax has no tensor of its own: the class says whether there is one,
    or its copy in the file does.
    """
    found = set()
    if SOFTMAX in names or architecture.endswith(("LMHeadModel", "DoubleHeadsModel")):
        found.add("next_token")
    if any(name.startswith("multiple_choice_head.") for name in names):
        found |= {"last_token", "choice"}
    return tuple(head for head in BUILT_IN if head in found)


def skipped(base: str) -> tuple[str, ...]:
    """Patterns of tensor names that are not parameters: the causal masks and the positions that older files hold."""
    return (re.escape(base) + r"(h\.\d+\.attn\.bias|position_ids)",)
