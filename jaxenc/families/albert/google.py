"""ALBERT in TensorFlow checkpoints of google-research/albert, in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.families import config_json, fine_tuned
from jaxenc.families.albert import names, transformers
from jaxenc.families.albert.names import GOOGLE_FILE
from jaxenc.families.foreign import Google, Import, Structure
from jaxenc.formats.tensor import Tensor


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a checkpoint of google-research/albert.

    `hidden_act: gelu` is the tanh form here (modeling.py), and LayerNorm's epsilon 1e-12. Classes have no names: LABEL_0, LABEL_1 ...
    """
    found = names.heads_of(tensors, GOOGLE_FILE, "")
    heads, labels = fine_tuned.read({}, found, lambda head: names.classes_of(tensors, head, GOOGLE_FILE), where)
    model = transformers.model_of(config, {}, config_json.GOOGLE_ACTIVATIONS, where)
    return transformers.imported(Structure(model, heads, labels.names), GOOGLE_FILE, tensors, where)


GOOGLE = Google("bert/encoder/transformer/", "albert_config.json", read)
