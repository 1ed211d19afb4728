"""ELMo in the format of allenai/bilm-tf and AllenNLP, an options.json and weights in HDF5, in and out.

The file holds the network without its softmax, which is only in the TensorFlow checkpoint, so it is neither read nor written.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families.elmo import names, options
from jaxenc.families.elmo.sizes import OPTIM
from jaxenc.families.foreign import AllenNlp, Import, Structure, Weights, check_layers
from jaxenc.formats import key_map
from jaxenc.formats.tensor import Tensor


def read(data: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path, words: Vocabulary | None) -> Import:
    """The model of the options `data`, read from the file `where`, and of the tensors of the weights. words: the vocabulary of the list of
    words in the same folder, None without one."""
    model = options.model_of(data, where)
    check_layers(max(model.layers, model.highways), tensors, where)
    if words:
        model = options.with_words(model, data, words, where)
    return Import(Structure(model, ()), names.split(tensors, model), names.entries(model), optim=OPTIM)


def write(ours: Weights) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(the options, {name: array} of the weights), without a softmax. Raises UserError as `options.of_model`."""
    model = ours.structure.model
    data, table = options.of_model(model), names.entries(model)
    kept = {name: branch for name, branch in ours.params.items() if name in {entry.ours.split("/")[0] for entry in table}}
    return data, names.joined(key_map.to_theirs(table, kept), model)


ALLENNLP = AllenNlp(read, write)
