"""Reads XLNet from TensorFlow checkpoints of zihangdai/xlnet."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.families.foreign import Google, Import
from jaxenc.families.xlnet import names, transformers
from jaxenc.formats.tensor import Tensor


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a checkpoint of zihangdai/xlnet, pretrained or as run_classifier.py or run_squad.py leaves it.

    `ff_activation: gelu` is the tanh form here (modeling.py), and LayerNorm's epsilon 1e-12. Classes have no names: LABEL_0, LABEL_1 ...
    """
    file, model = names.google_file(tensors), transformers.model_of(config, True, where)
    return transformers.imported(model, names.heads_of(tensors, file, ""), {}, file, tensors, where)


GOOGLE = Google("model/transformer/", "xlnet_config.json", read)
