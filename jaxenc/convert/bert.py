"""BERT's and RoBERTa's parameters in the files of transformers and of google-research/bert: one table of names for all three."""

import dataclasses
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from jaxenc.convert.key_map import IDENTITY, TRANSPOSE, Entry, rows
from jaxenc.layers.stack import layer_name
from jaxenc.models.bert import BertConfig

HEADS = ("pooler", "mlm", "next_sentence", "classifier", "tags", "spans")


class Part(NamedTuple):
    """A group of leaves: the head that it belongs to ('' for the encoder), our path, their names, and its kind.

    bert, roberta: in transformers. google: in google-research/bert's checkpoints. '' where no such model is published. `{n}` is a layer's
    number, `{layer}` our name for it. The encoder and its pooler stand behind a base that differs from file to file.
    """

    head: str
    ours: str
    bert: str
    roberta: str
    google: str
    kind: str


def _encoder(ours: str, theirs: str, kind: str) -> Part:
    """transformers kept google-research's names and wrote `/` as `.` and `layer_3` as `layer.3`."""
    return Part("", ours, theirs, theirs, theirs.replace("layer.", "layer_").replace(".", "/"), kind)


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
    Part("pooler", "pooler/dense", "pooler.dense", "pooler.dense", "pooler/dense", "dense"),
    Part("mlm", "mlm/dense", "cls.predictions.transform.dense", "lm_head.dense", "cls/predictions/transform/dense", "dense"),
    Part("mlm", "mlm/norm", "cls.predictions.transform.LayerNorm", "lm_head.layer_norm", "cls/predictions/transform/LayerNorm", "norm"),
    Part("mlm", "mlm/bias", "cls.predictions.bias", "lm_head.bias", "cls/predictions/output_bias", "bias"),
    Part("next_sentence", "next_sentence/dense", "cls.seq_relationship", "", "cls/seq_relationship/", "output"),
    Part("classifier", "classifier/dense", "classifier", "classifier.out_proj", "", "output"),
    Part("tags", "tags/dense", "classifier", "classifier", "", "output"),
    Part("spans", "spans/dense", "qa_outputs", "qa_outputs", "cls/squad/", "output"),
)
