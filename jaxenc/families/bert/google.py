"""Reads BERT from TensorFlow checkpoints of google-research/bert."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.families import fine_tuned
from jaxenc.families.bert import names, transformers
from jaxenc.families.bert.names import GOOGLE_FILE
from jaxenc.families.foreign import Google, Import, Structure
from jaxenc.formats.tensor import Tensor


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a checkpoint of google-research/bert.

    `hidden_act: gelu` is the tanh form here (modeling.py), and LayerNorm's epsilon 1e-12. Classes have no names: LABEL_0, LABEL_1 ...
    """
    found = names.heads_of(tensors, GOOGLE_FILE, "")
    heads, labels = fine_tuned.read({}, found, lambda head: names.classes_of(tensors, head, GOOGLE_FILE), where)
    structure = Structure(transformers.model_of(config, "google", where), heads, labels.names)
    return transformers.imported(structure, GOOGLE_FILE, tensors, where)


GOOGLE = Google("bert/", "bert_config.json", read)
