"""ALBERT's parameters in the files of transformers and of google-research/albert: one table of names for both."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from jaxenc.families import fine_tuned
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import Entry
from jaxenc.formats.leaves import NONE
from jaxenc.formats.tensor import Tensor
from jaxenc.layers.stack import layer_name


class AlbertPart(NamedTuple):
    """As `bert.names.BertPart`: the head, our path, the names in files of transformers and of google-research/albert, and the kind of
    leaf. `{n}` is the number of a group of layers, `{layer}` our name for it."""

    head: str
    ours: str
    torch: str
    google: str
    kind: str


LAYER, GOOGLE_LAYER = "encoder.albert_layer_groups.{n}.albert_layers.0", "encoder/transformer/group_{n}/inner_group_0"
PARTS = (
    AlbertPart("", "embeddings/token/table", "embeddings.word_embeddings", "embeddings/word_embeddings", "vocabulary"),
    AlbertPart("", "embeddings/position/table", "embeddings.position_embeddings", "embeddings/position_embeddings", "table"),
    AlbertPart("", "embeddings/type/table", "embeddings.token_type_embeddings", "embeddings/token_type_embeddings", "table"),
    AlbertPart("", "embeddings/norm", "embeddings.LayerNorm", "embeddings/LayerNorm", "norm"),
    AlbertPart("", "project", "encoder.embedding_hidden_mapping_in", "encoder/embedding_hidden_mapping_in", "dense"),
    *(
        AlbertPart(
            "", f"encoder/{{layer}}/attention/{part}", f"{LAYER}.attention.{part}", f"{GOOGLE_LAYER}/attention_1/self/{part}", "dense"
        )
        for part in ("query", "key", "value")
    ),
    AlbertPart("", "encoder/{layer}/attention/output", f"{LAYER}.attention.dense", f"{GOOGLE_LAYER}/attention_1/output/dense", "dense"),
    AlbertPart("", "encoder/{layer}/attention/norm", f"{LAYER}.attention.LayerNorm", f"{GOOGLE_LAYER}/LayerNorm", "norm"),
    AlbertPart("", "encoder/{layer}/feed_forward/up", f"{LAYER}.ffn", f"{GOOGLE_LAYER}/ffn_1/intermediate/dense", "dense"),
    AlbertPart("", "encoder/{layer}/feed_forward/down", f"{LAYER}.ffn_output", f"{GOOGLE_LAYER}/ffn_1/intermediate/output/dense", "dense"),
    AlbertPart("", "encoder/{layer}/feed_forward/norm", f"{LAYER}.full_layer_layer_norm", f"{GOOGLE_LAYER}/LayerNorm_1", "norm"),
    AlbertPart("pooler", "pooler/dense", "pooler", "pooler/dense", "dense"),
    AlbertPart("mlm", "mlm/dense", "predictions.dense", "cls/predictions/transform/dense", "dense"),
    AlbertPart("mlm", "mlm/norm", "predictions.LayerNorm", "cls/predictions/transform/LayerNorm", "norm"),
    AlbertPart("mlm", "mlm/bias", "predictions.bias", "cls/predictions/output_bias", "bias"),
    AlbertPart("sentence_order", "sentence_order/dense", "sop_classifier.classifier", "cls/seq_relationship/", "output"),
    *(
        AlbertPart(head, f"{head}/dense", "classifier", google, "output")
        for head, google in (("classifier", ""), ("regressor", ""), ("multilabel", NONE), ("choice", NONE))
    ),
    AlbertPart("tags", "tags/dense", "classifier", NONE, "output"),
    AlbertPart("spans", "spans/dense", "qa_outputs", NONE, "output"),
)
# What transformers may hold twice, since its decoder is tied.
COPIES = {"embeddings/token/table": "predictions.decoder.weight", "mlm/bias": "predictions.decoder.bias"}


@dataclasses.dataclass(frozen=True)
class AlbertFile:
    """How one file writes the names. base: what stands before those of the encoder and the pooler; google: the file is a checkpoint of
    google-research/albert."""

    base: str
    google: bool = False


GOOGLE_FILE = AlbertFile("bert/", google=True)


def file_of(names: Collection[str]) -> AlbertFile:
    """The layout of a file of transformers: the base is `albert.` or, where the encoder was saved alone, nothing."""
    return AlbertFile("albert." if any(name.startswith("albert.") for name in names) else "")


def entries(config: AlbertConfig, heads: Collection[str], file: AlbertFile) -> tuple[Entry, ...]:
    """The table of one model: the encoder and `heads`, built-in ones, in the order of PARTS. Raises ValueError for a head that such a file
    does not have."""
    missing = set(heads) - {part.head for part in PARTS if not (file.google and part.google == NONE)}
    if missing:
        raise ValueError(f"files of ALBERT have no head {', '.join(missing)}")
    parts = [part for part in PARTS if part.head in ("", *heads) and (config.types or "/type/" not in part.ours)]
    return tuple(entry for part in parts for entry in _of_part(part, config, file))


def _of_part(part: AlbertPart, config: AlbertConfig, file: AlbertFile) -> Iterator[Entry]:
    name = part.google if file.google else part.torch
    base = file.base if part.head in ("", "pooler") else ""
    for n in range(config.groups if "{n}" in name else 1):
        ours, theirs = part.ours.format(layer=layer_name(n)), base + name.format(n=n)
        yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, file.google, False, {} if file.google else COPIES)


def _names_of(head: str, file: AlbertFile) -> list[str]:
    return [entry.theirs for part in PARTS if part.head == head for entry in _of_part(part, AlbertConfig(layers=1), file)]


def heads_of(names: Collection[str], file: AlbertFile, architecture: str) -> tuple[str, ...]:
    """The heads whose tensors are among `names`, as `fine_tuned.heads_of`."""
    published = {part.head for part in PARTS if part.head and not (file.google and part.google == NONE)}
    tensors = {head: _names_of(head, file) for head in published}
    return fine_tuned.heads_of(tensors, names, architecture, ("classifier", "choice", "sentence_order"))


def classes_of(tensors: Mapping[str, Tensor], head: str, file: AlbertFile) -> int:
    """The number of classes of `head`, as `fine_tuned.classes_of`."""
    return fine_tuned.classes_of(tensors, _names_of(head, file))


def skipped(file: AlbertFile) -> tuple[str, ...]:
    """Patterns of names that hold no parameter of the model: buffers of ids."""
    return (re.escape(file.base) + r"embeddings\.(position_ids|token_type_ids)",)
