"""The names of BERT's and RoBERTa's parameters in the files of transformers and of google-research/bert, in one table."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from jaxenc.families import fine_tuned
from jaxenc.families.bert.model import BertConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import Entry
from jaxenc.formats.leaves import NONE
from jaxenc.formats.tensor import Tensor
from jaxenc.layers.stack import layer_name


class BertPart(NamedTuple):
    """A group of leaves: the head that it belongs to ('' for the encoder), our path, their names, and its kind, one of `leaves.LEAVES`.

    bert, roberta: in transformers, NONE where it has no such model; google: in google-research/bert's checkpoints. `{n}` is a layer's
    number, `{layer}` our name for it. Names of the encoder and the pooler begin with a base that differs from file to file.
    """

    head: str
    ours: str
    bert: str
    roberta: str
    google: str
    kind: str


def _encoder(ours: str, theirs: str, kind: str) -> BertPart:
    """transformers kept google-research's names and wrote `/` as `.` and `layer_3` as `layer.3`."""
    return BertPart("", ours, theirs, theirs, theirs.replace("layer.", "layer_").replace(".", "/"), kind)


PARTS = (
    _encoder("embeddings/token/table", "embeddings.word_embeddings", "vocabulary"),
    _encoder("embeddings/position/table", "embeddings.position_embeddings", "table"),
    _encoder("embeddings/type/table", "embeddings.token_type_embeddings", "table"),
    _encoder("embeddings/norm", "embeddings.LayerNorm", "norm"),
    _encoder("encoder/{layer}/attention/query", "encoder.layer.{n}.attention.self.query", "dense"),
    _encoder("encoder/{layer}/attention/key", "encoder.layer.{n}.attention.self.key", "dense"),
    _encoder("encoder/{layer}/attention/value", "encoder.layer.{n}.attention.self.value", "dense"),
    _encoder("encoder/{layer}/attention/output", "encoder.layer.{n}.attention.output.dense", "dense"),
    _encoder("encoder/{layer}/attention/norm", "encoder.layer.{n}.attention.output.LayerNorm", "norm"),
    _encoder("encoder/{layer}/feed_forward/up", "encoder.layer.{n}.intermediate.dense", "dense"),
    _encoder("encoder/{layer}/feed_forward/down", "encoder.layer.{n}.output.dense", "dense"),
    _encoder("encoder/{layer}/feed_forward/norm", "encoder.layer.{n}.output.LayerNorm", "norm"),
    BertPart("pooler", "pooler/dense", "pooler.dense", "pooler.dense", "pooler/dense", "dense"),
    BertPart("mlm", "mlm/dense", "cls.predictions.transform.dense", "lm_head.dense", "cls/predictions/transform/dense", "dense"),
    BertPart("mlm", "mlm/norm", "cls.predictions.transform.LayerNorm", "lm_head.layer_norm", "cls/predictions/transform/LayerNorm", "norm"),
    BertPart("mlm", "mlm/bias", "cls.predictions.bias", "lm_head.bias", "cls/predictions/output_bias", "bias"),
    BertPart("next_sentence", "next_sentence/dense", "cls.seq_relationship", NONE, "cls/seq_relationship/", "output"),
    *(
        BertPart(head, f"{head}/dense", "classifier", "classifier.out_proj", google, "output")
        for head, google in (("classifier", ""), ("regressor", ""), ("multilabel", NONE))
    ),
    BertPart("choice", "choice/dense", "classifier", "classifier", NONE, "output"),
    BertPart("tags", "tags/dense", "classifier", "classifier", NONE, "output"),
    BertPart("spans", "spans/dense", "qa_outputs", "qa_outputs", "cls/squad/", "output"),
)

# Tied parameters that files of transformers may hold a second time, under the names of the decoder.
COPIES = {
    "bert": {"embeddings/token/table": "cls.predictions.decoder.weight", "mlm/bias": "cls.predictions.decoder.bias"},
    "roberta": {"embeddings/token/table": "lm_head.decoder.weight", "mlm/bias": "lm_head.decoder.bias"},
    "google": {},
}


@dataclasses.dataclass(frozen=True)
class BertFile:
    """The naming scheme of one file. column: of the table: bert, roberta or google; base: prefix of the encoder's names; gamma: norms have
    gamma and beta instead of weight and bias, as in the oldest torch files."""

    column: str
    base: str
    gamma: bool = False


GOOGLE_FILE = BertFile("google", "bert/")


def file_of(column: str, names: Collection[str]) -> BertFile:
    """The naming scheme of a file of transformers. The base is `bert.`, `roberta.` or, for an encoder without heads, usually empty."""
    return BertFile(column, base_of(f"{column}.", names), any(name.endswith(".gamma") for name in names))


def base_of(own: str, names: Collection[str]) -> str:
    """The prefix of the encoder's names in a file of transformers: `own`, or '' where no name begins with it."""
    return own if any(name.startswith(own) for name in names) else ""


def entries(config: BertConfig, heads: Collection[str], file: BertFile) -> tuple[Entry, ...]:
    """The key map of one model: the encoder and `heads` (built-in ones), in the order of PARTS.

    Raises ValueError for a head that this column does not have.
    """
    parts = [part for part in PARTS if part.head in ("", *heads) and (config.types or "/type/" not in part.ours)]
    return tuple(entry for part in parts for entry in _of_part(part, config, file, classifies(heads)))


def classifies(heads: Collection[str]) -> bool:
    """Whether one of `heads` is what transformers calls sequence classification; its RoBERTa has a dense layer of its own there."""
    return any(fine_tuned.CLASSES[head].ending == "ForSequenceClassification" for head in heads if head in fine_tuned.CLASSES)


def _of_part(part: BertPart, config: BertConfig, file: BertFile, classifier: bool) -> Iterator[Entry]:
    name = getattr(part, file.column)
    if name == NONE:
        raise ValueError(f"the layout {file.column} has no head {part.head}")
    base = file.base if part.head in ("", "pooler") else ""
    if classifier and part.head == "pooler" and file.column == "roberta":
        # RoBERTa's classification head has a dense layer of its own, which is what a pooler is; the encoder's pooler is not used.
        base, name = "", "classifier.dense"
    google, copies = file.column == "google", COPIES[file.column]
    for n in range(config.layers if "{n}" in name else 1):
        ours, theirs = part.ours.format(layer=layer_name(n)), base + name.format(n=n)
        yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, google, file.gamma, copies)


def _names_of(head: str, file: BertFile) -> list[str]:
    one = BertConfig(layers=1)
    return [entry.theirs for part in PARTS if part.head == head for entry in _of_part(part, one, file, False)]


def heads_of(names: Collection[str], file: BertFile, architecture: str) -> tuple[str, ...]:
    """The heads whose tensors are among `names`, as `fine_tuned.heads_of`."""
    published = {part.head for part in PARTS if part.head and getattr(part, file.column) != NONE}
    tensors = {head: _names_of(head, file) for head in published}
    return fine_tuned.heads_of(tensors, names, architecture, ("classifier", "choice", "next_sentence"))


def classes_of(tensors: Mapping[str, Tensor], head: str, file: BertFile) -> int:
    """The number of classes of `head`, as `fine_tuned.classes_of`."""
    return fine_tuned.classes_of(tensors, _names_of(head, file))


def skipped(file: BertFile, heads: Collection[str]) -> tuple[str, ...]:
    """Patterns of tensor names in transformers that are not parameters of ours: buffers of ids, and the pooler of a RoBERTa classifier."""
    base = re.escape(file.base)
    unused = (base + r"pooler\.dense\.(weight|bias)",) if file.column == "roberta" and classifies(heads) else ()
    return (base + r"embeddings\.(position_ids|token_type_ids)", *unused)
