"""The names of XLNet's parameters in the files of transformers and of zihangdai/xlnet, in one table."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jaxenc.families import fine_tuned
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import TRANSPOSE, Entry, Transform
from jaxenc.formats.leaves import NONE
from jaxenc.formats.tensor import Tensor
from jaxenc.layers.stack import layer_name


class XlnetPart(NamedTuple):
    """As `bert.names.BertPart`. google: in zihangdai/xlnet's checkpoints, where `NAME[{n}]` is a slice of a tensor of all layers; kind: one
    of `leaves.LEAVES` or of `transforms`. The encoder's names get the prefix of the file.
    """

    head: str
    ours: str
    torch: str
    google: str
    kind: str


ATTENTION, FEED_FORWARD = "encoder/{layer}/attention", "encoder/{layer}/feed_forward"
# In both kinds of file the kernels have a separate axis of attention heads and are not transposed: each is [width, heads, d].
KERNELS = {"query": ("q", "heads"), "key": ("k", "heads"), "value": ("v", "heads"), "relative": ("r", "heads"), "output": ("o", "to width")}
BIASES = {"content_bias": "r_w_bias", "position_bias": "r_r_bias", "segment_bias": "r_s_bias"}
SEGMENTS = "seg_embed"
TOKENS = "word_embedding"
PARTS = (
    XlnetPart("", "embeddings/token/table", TOKENS, f"{TOKENS}/lookup_table", "vocabulary"),
    XlnetPart("", "embeddings/mask", "mask_emb", "mask_emb/mask_emb", "vector"),
    *(
        XlnetPart("", f"{ATTENTION}/{ours}/kernel", f"layer.{{n}}.rel_attn.{letter}", f"layer_{{n}}/rel_attn/{letter}/kernel", kind)
        for ours, (letter, kind) in KERNELS.items()
    ),
    *(XlnetPart("", f"{ATTENTION}/{ours}", f"layer.{{n}}.rel_attn.{name}", f"{name}[{{n}}]", "flat") for ours, name in BIASES.items()),
    XlnetPart("", f"{ATTENTION}/segment/table", f"layer.{{n}}.rel_attn.{SEGMENTS}", f"{SEGMENTS}[{{n}}]", "heads"),
    XlnetPart("", f"{ATTENTION}/norm", "layer.{n}.rel_attn.layer_norm", "layer_{n}/rel_attn/LayerNorm", "norm"),
    XlnetPart("", f"{FEED_FORWARD}/up", "layer.{n}.ff.layer_1", "layer_{n}/ff/layer_1", "dense"),
    XlnetPart("", f"{FEED_FORWARD}/down", "layer.{n}.ff.layer_2", "layer_{n}/ff/layer_2", "dense"),
    XlnetPart("", f"{FEED_FORWARD}/norm", "layer.{n}.ff.layer_norm", "layer_{n}/ff/LayerNorm", "norm"),
    XlnetPart("lm", "lm/bias", "lm_loss.bias", "model/lm_loss/bias", "bias"),
    XlnetPart("summary", "summary/dense", "sequence_summary.summary", "model/sequnece_summary/summary", "dense"),
    *(
        XlnetPart(head, f"{head}/dense", "logits_proj", google, "dense")
        for head, google in (
            ("classifier", "model/{task}/logit"),
            ("regressor", "model/{task}/logit"),
            ("multilabel", NONE),
            ("choice", NONE),
        )
    ),
    XlnetPart("tags", "tags/dense", "classifier", NONE, "dense"),
    XlnetPart("spans", "spans/dense", "qa_outputs", NONE, "dense"),
    XlnetPart("beam_spans", "beam_spans/start", "start_logits.dense", "start_logits/dense", "dense"),
    XlnetPart("beam_spans", "beam_spans/end_hidden", "end_logits.dense_0", "end_logits/dense_0", "dense"),
    XlnetPart("beam_spans", "beam_spans/end_norm", "end_logits.LayerNorm", "end_logits/LayerNorm", "norm"),
    XlnetPart("beam_spans", "beam_spans/end", "end_logits.dense_1", "end_logits/dense_1", "dense"),
    XlnetPart("beam_spans", "beam_spans/no_answer_hidden", "answer_class.dense_0", "answer_class/dense_0", "dense"),
    XlnetPart("beam_spans", "beam_spans/no_answer", "answer_class.dense_1", "answer_class/dense_1", "kernel"),
)
# Tied parameters that files of transformers may hold a second time, under the names of the decoder.
COPIES = {"embeddings/token/table": "lm_loss.weight"}
# run_classifier.py puts the name of the task into the names of the logits.
TASK = re.compile(r"model/((classification|regression)_[^/]*)/logit/kernel")


@dataclasses.dataclass(frozen=True)
class XlnetFile:
    """The naming scheme of one file. base: prefix of the encoder's names; google: whether it is a checkpoint of zihangdai/xlnet; task: in
    such a checkpoint, the scope of the classifier, such as classification_mnli."""

    base: str
    google: bool = False
    task: str = ""


def file_of(names: Collection[str]) -> XlnetFile:
    """The naming scheme of a file of transformers. The base is `transformer.` or, for an encoder without heads, usually empty."""
    return XlnetFile("transformer." if any(name.startswith("transformer.") for name in names) else "")


def google_file(names: Collection[str]) -> XlnetFile:
    """The naming scheme of a checkpoint of zihangdai/xlnet."""
    tasks = [found[1] for name in names if (found := TASK.fullmatch(name))]
    return XlnetFile("model/transformer/", True, tasks[0] if tasks else "")


def stacked(file: XlnetFile) -> tuple[str, ...]:
    """Names of the tensors of a file that hold the parameters of all layers, stacked on the first axis."""
    return tuple(file.base + name for name in (*BIASES.values(), SEGMENTS)) if file.google else ()


def transforms(config: XlnetConfig) -> dict[str, Transform]:
    """{kind: transform} of the kinds of XlnetPart that no other family has: their arrays have an axis of heads or of size 1, ours do
    not."""
    heads, width = (config.heads, config.width // config.heads), config.width
    split = Transform(lambda a: a.reshape(len(a), width), lambda a: a.reshape(len(a), *heads))
    return {
        "heads": split,
        "to width": split.then(TRANSPOSE),
        "flat": Transform(np.ravel, lambda a: a.reshape(heads)),
        "vector": Transform(np.ravel, lambda a: a.reshape(1, 1, width)),
    }


def entries(config: XlnetConfig, heads: Collection[str], file: XlnetFile) -> tuple[Entry, ...]:
    """The key map of one model: the encoder and `heads` (built-in ones), in the order of PARTS.

    Raises ValueError for a head that such a file does not have.
    """
    if missing := set(heads) - {part.head for part in PARTS if not (file.google and part.google == NONE)}:
        raise ValueError(f"files of XLNet have no head {', '.join(sorted(missing))}")
    turned = transforms(config)
    return tuple(entry for part in PARTS if part.head in ("", *heads) for entry in _of_part(part, config, file, turned))


def _of_part(part: XlnetPart, config: XlnetConfig, file: XlnetFile, turned: Mapping[str, Transform]) -> Iterator[Entry]:
    name = ("" if part.head else file.base) + (part.google if file.google else part.torch)
    for n in range(config.layers if "{layer}" in part.ours else 1):
        ours, theirs = part.ours.format(layer=layer_name(n)), name.format(n=n, task=file.task)
        if part.kind in turned:
            yield Entry(theirs, ours, turned[part.kind])
        else:
            yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, file.google, False, {} if file.google else COPIES)


def _names_of(head: str, file: XlnetFile) -> list[str]:
    return [entry.theirs for part in PARTS if part.head == head for entry in _of_part(part, XlnetConfig(layers=1), file, {})]


def heads_of(names: Collection[str], file: XlnetFile, architecture: str) -> tuple[str, ...]:
    """The heads whose tensors are among `names`, as `fine_tuned.heads_of`."""
    published = {part.head for part in PARTS if part.head and not (file.google and part.google == NONE)}
    tensors = {head: _names_of(head, file) for head in published}
    return fine_tuned.heads_of(tensors, names, architecture)


def classes_of(tensors: Mapping[str, Tensor], head: str, file: XlnetFile) -> int:
    """The number of classes of `head`, from the length of its bias; 2, the default of transformers, without such a tensor."""
    biases = [tensors[name] for name in _names_of(head, file) if name.endswith("bias") and name in tensors]
    return next((bias.shape[0] for bias in biases if bias.shape), 2)
