"""ELMo as allenai/bilm-tf and AllenNLP keep it: an options.json and weights in HDF5, in and out.

The weights are those of the network alone: the softmax is only in TensorFlow's checkpoint, so it is neither read nor written.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families.elmo import names, options
from jaxenc.families.foreign import AllenNlp, Import, Structure, Weights, check_layers
from jaxenc.formats import key_map
from jaxenc.formats.tensor import Tensor

# Adagrad as bin/train_elmo.py of allenai/bilm-tf has it.
OPTIM = MappingProxyType(
    {"name": "adagrad", "lr": 0.2, "warmup": 0, "schedule": "constant", "weight_decay": 0.0, "clip": 10.0, "decay_exclude": ()}
)


def read(data: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path, words: Vocabulary | None) -> Import:
    """The model of the options `data`, whose file is `where`, and the tensors of the weights. words: of the list of words beside them."""
    model = options.model_of(data, where)
    check_layers(max(model.layers, model.highways), tensors, where)
    if words:
        model = options.with_words(model, data, words, where)
    return Import(Structure(model, ()), names.split(tensors, model), names.entries(model), optim=OPTIM)


def write(ours: Weights) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The options and {name: array} of the weights, without a softmax. Raises UserError as `options.of_model`."""
    model = ours.structure.model
    data, table = options.of_model(model), names.entries(model)
    kept = {name: branch for name, branch in ours.params.items() if name in {entry.ours.split("/")[0] for entry in table}}
    return data, names.joined(key_map.to_theirs(table, kept), model)


ALLENNLP = AllenNlp(read, write)
