"""The names of DistilBERT's parameters in the files of transformers."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from jaxenc.families import fine_tuned
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import Entry
from jaxenc.formats.tensor import Tensor
from jaxenc.layers.stack import layer_name


class DistilbertPart(NamedTuple):
    """A group of leaves: the head that it belongs to ('' for the encoder), our path, their name, and its kind, one of `leaves.LEAVES`.
    `{n}` is a layer's number, `{layer}` our name for it; the encoder's names get the base of the file."""

    head: str
    ours: str
    theirs: str
    kind: str


LAYER = "transformer.layer.{n}"
PARTS = (
    DistilbertPart("", "embeddings/token/table", "embeddings.word_embeddings", "vocabulary"),
    DistilbertPart("", "embeddings/position/table", "embeddings.position_embeddings", "table"),
    DistilbertPart("", "embeddings/norm", "embeddings.LayerNorm", "norm"),
    DistilbertPart("", "encoder/{layer}/attention/query", f"{LAYER}.attention.q_lin", "dense"),
    DistilbertPart("", "encoder/{layer}/attention/key", f"{LAYER}.attention.k_lin", "dense"),
    DistilbertPart("", "encoder/{layer}/attention/value", f"{LAYER}.attention.v_lin", "dense"),
    DistilbertPart("", "encoder/{layer}/attention/output", f"{LAYER}.attention.out_lin", "dense"),
    DistilbertPart("", "encoder/{layer}/attention/norm", f"{LAYER}.sa_layer_norm", "norm"),
    DistilbertPart("", "encoder/{layer}/feed_forward/up", f"{LAYER}.ffn.lin1", "dense"),
    DistilbertPart("", "encoder/{layer}/feed_forward/down", f"{LAYER}.ffn.lin2", "dense"),
    DistilbertPart("", "encoder/{layer}/feed_forward/norm", f"{LAYER}.output_layer_norm", "norm"),
    DistilbertPart("pooler", "pooler/dense", "pre_classifier", "dense"),
    DistilbertPart("mlm", "mlm/dense", "vocab_transform", "dense"),
    DistilbertPart("mlm", "mlm/norm", "vocab_layer_norm", "norm"),
    DistilbertPart("mlm", "mlm/bias", "vocab_projector.bias", "bias"),
    *(DistilbertPart(head, f"{head}/dense", "classifier", "dense") for head in fine_tuned.CLASSES),
    DistilbertPart("spans", "spans/dense", "qa_outputs", "dense"),
)
# The tied table, which files may hold a second time under the decoder's name.
COPIES = {"embeddings/token/table": "vocab_projector.weight"}
BASE = "distilbert."


def file_base(names: Collection[str]) -> str:
    """The prefix of the encoder's names: `distilbert.`, or '' in a file of the encoder alone."""
    return BASE if any(name.startswith(BASE) for name in names) else ""


def entries(config: DistilbertConfig, heads: Collection[str], base: str) -> tuple[Entry, ...]:
    """The key map of one model: the encoder and `heads` (built-in ones), in the order of PARTS."""
    return tuple(entry for part in PARTS if part.head in ("", *heads) for entry in _of_part(part, config, base))


def _of_part(part: DistilbertPart, config: DistilbertConfig, base: str) -> Iterator[Entry]:
    for n in range(config.layers if "{n}" in part.theirs else 1):
        ours, theirs = part.ours.format(layer=layer_name(n)), ("" if part.head else base) + part.theirs.format(n=n)
        yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, False, False, COPIES)


def _names_of(head: str) -> list[str]:
    return [entry.theirs for part in PARTS if part.head == head for entry in _of_part(part, DistilbertConfig(layers=1), "")]


def heads_of(names: Collection[str], architecture: str) -> tuple[str, ...]:
    """The heads whose tensors are among `names`, as `fine_tuned.heads_of`. Heads on texts come with a dense layer before them
    (`pre_classifier`), which is what a pooler is."""
    tensors = {part.head: _names_of(part.head) for part in PARTS if part.head}
    return fine_tuned.heads_of(tensors, names, architecture)


def classes_of(tensors: Mapping[str, Tensor], head: str) -> int:
    """The number of classes of `head`, as `fine_tuned.classes_of`."""
    return fine_tuned.classes_of(tensors, _names_of(head))


def skipped(base: str) -> tuple[str, ...]:
    """Patterns of tensor names that are not parameters: buffers of ids."""
    return (re.escape(base) + r"embeddings\.position_ids",)
