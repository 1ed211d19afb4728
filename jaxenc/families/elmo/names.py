"""The names of ELMo's parameters in the HDF5 files of bilm-tf (bilm/training.py, dump_weights) and AllenNLP (modules/elmo.py,
elmo_lstm.py)."""

import functools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from jaxenc.families.both_directions import DIRECTIONS
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.formats.key_map import IDENTITY, Entry, Transform
from jaxenc.formats.tensor import Tensor
from jaxenc.layers.stack import layer_name

CELL = "RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
# The kernels of a cell's input and of its previous output, concatenated on the first axis.
JOINT = "W_0"
PARTS = ("input", "recurrent")


def entries(model: ElmoConfig) -> tuple[Entry, ...]:
    """The key map of one model. The parts of a joint kernel have the names that `split` gives them."""
    return (*_of_words(model), *_of_layers(model))


def _of_words(model: ElmoConfig) -> Iterator[Entry]:
    yield Entry("char_embed", "char_cnn/characters/table")
    for number, (width, filters) in enumerate(zip(model.filter_widths, model.filters, strict=True)):
        ours = f"char_cnn/convolution_{number:02d}"
        yield Entry(f"CNN/W_cnn_{number}", f"{ours}/kernel", _convolution(width, model.character_width, filters))
        yield Entry(f"CNN/b_cnn_{number}", f"{ours}/bias")
    for number in range(model.highways):
        for gate in ("carry", "transform"):
            ours, theirs = f"char_cnn/highway_{number:02d}/{gate}", f"CNN_high_{number}"
            yield Entry(f"{theirs}/W_{gate}", f"{ours}/kernel")
            yield Entry(f"{theirs}/b_{gate}", f"{ours}/bias")
    yield Entry("CNN_proj/W_proj", "char_cnn/projection/kernel")
    yield Entry("CNN_proj/b_proj", "char_cnn/projection/bias")


def _of_layers(model: ElmoConfig) -> Iterator[Entry]:
    for name, ours in _cells(model):
        yield from (Entry(f"{name}/{JOINT}[{part}]", f"{ours}/{part}", IDENTITY) for part in PARTS)
        yield Entry(f"{name}/B", f"{ours}/bias")
        yield Entry(f"{name}/W_P_0", f"{ours}/projection")


def _cells(model: ElmoConfig) -> Iterator[tuple[str, str]]:
    """(their name, our path) of each LSTM."""
    for number, direction in enumerate(DIRECTIONS):
        for layer in range(model.layers):
            yield CELL.format(direction=number, layer=layer), f"{direction}/{layer_name(layer)}"


def _convolution(width: int, characters: int, filters: int) -> Transform:
    """[1, width, characters, filters], as TensorFlow's two-dimensional convolution has it, and [width · characters, filters]."""
    flat = lambda a: a.reshape(math.prod(a.shape[:3]), a.shape[3])
    return Transform(flat, lambda a: a.reshape(1, width, characters, filters))


def split(tensors: Mapping[str, Tensor], model: ElmoConfig) -> dict[str, Tensor]:
    """`tensors` with each joint kernel replaced by its two parts: the first `model.width` rows, for the input, and the rest. A scalar
    stays, under a name that is in no key map, so the conversion reports it."""
    out = dict(tensors)
    for name, _ in _cells(model):
        joint = out.get(f"{name}/{JOINT}")
        if joint and joint.shape:
            del out[joint.name]
            rows = (slice(0, model.width), slice(model.width, None))
            for part, some in zip(PARTS, rows, strict=True):
                shape = (len(range(*some.indices(joint.shape[0]))), *joint.shape[1:])
                read = functools.partial(lambda joint, some: joint.read()[some], joint, some)
                out[f"{joint.name}[{part}]"] = Tensor(f"{joint.name}[{part}]", shape, joint.dtype, read)
    return out


def joined(arrays: Mapping[str, np.ndarray], model: ElmoConfig) -> dict[str, np.ndarray]:
    """Inverts `split`."""
    out = dict(arrays)
    for name, _ in _cells(model):
        out[f"{name}/{JOINT}"] = np.concatenate([out.pop(f"{name}/{JOINT}[{part}]") for part in PARTS])
    return out
