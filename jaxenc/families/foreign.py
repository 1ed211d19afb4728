"""What a family says of the files that other projects keep its models in: all that the converters ask of it."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.formats.key_map import Entry
from jaxenc.formats.tensor import Tensor
from jaxenc.heads.pooler import TANH
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class Structure:
    """A network and what sits on it, whatever trained it. heads: names of built-in heads, in the order of `heads.BUILT_IN`; labels: the
    names of the classes, () where no head has classes; pooler_activation: of the head `pooler`, where there is one."""

    model: ModelConfig
    heads: tuple[str, ...]
    labels: tuple[str, ...] = ()
    pooler_activation: str = TANH


@dataclasses.dataclass(frozen=True)
class Import:
    """How files of theirs become a model of ours.

    tensors: those of the files by the names that `entries`, the key map, has: a tensor that holds several leaves is there in parts.
    skipped: patterns of their names that hold no parameter. optim: fields of `optim` that such models were trained with, where the
    defaults of a run are others. unstated: fields of the run that the files do not state; note: how the line for the user about them
    begins, '' for no line.
    """

    structure: Structure
    tensors: Mapping[str, Tensor]
    entries: tuple[Entry, ...]
    skipped: tuple[str, ...] = ()
    optim: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unstated: tuple[str, ...] = ()
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Weights:
    """A model of ours on its way out. vocabulary: its tokenizer's, None without one."""

    structure: Structure
    vocabulary: Vocabulary | None
    params: Tree


@dataclasses.dataclass(frozen=True)
class Export:
    """A model of ours as transformers has it. config: its config.json; params: those that `entries` name.

    For the check: the first of the config's `architectures` opens it, `pad_token_id` pads its rows on the side `padding`, and outputs are
    {our output: attributes of what that class returns}, hidden states apart.
    """

    config: dict[str, Any]
    entries: tuple[Entry, ...]
    params: Tree
    outputs: Mapping[str, tuple[str, ...]]
    padding: str = "right"


# The content of a config file, the tensors beside it by name, and the config's path, with which every message begins.
Reader = Callable[[Mapping[str, Any], Mapping[str, Tensor], Path], Import]


@dataclasses.dataclass(frozen=True)
class Folders:
    """Models of ours that are several of transformers, each in a folder of its own.

    names: of these folders; split: {one of them: its model}, {} for what is one model there too; join: the way back, and a line for
    the user, '' for none. Both raise UserError, `join` where the models do not belong together.
    """

    names: tuple[str, ...]
    split: Callable[[Weights], Mapping[str, Weights]]
    join: Callable[[Mapping[str, Weights]], tuple[Weights, str]]


@dataclasses.dataclass(frozen=True)
class Transformers:
    """Folders of transformers. model_types: what `model_type` in a config.json of theirs may be; read: a folder with one of them; write:
    the way back; several: None where a model of ours always is one of theirs. `read` and `write` raise UserError for what cannot be
    converted."""

    model_types: tuple[str, ...]
    read: Reader
    write: Callable[[Weights], Export]
    several: Folders | None = None


@dataclasses.dataclass(frozen=True)
class Google:
    """TensorFlow checkpoints of the paper's authors. base: what names of their tensors begin with; config: name of the file beside the
    weights, '' where the weights tell all; read: raises UserError for what cannot be converted."""

    base: str
    config: str
    read: Reader


@dataclasses.dataclass(frozen=True)
class AllenNlp:
    """An options.json and weights in HDF5. read: as a Reader, with the vocabulary of the words beside the files, None without one; write:
    the options and {name: array} of the weights. Both raise UserError for what cannot be converted."""

    read: Callable[[Mapping[str, Any], Mapping[str, Tensor], Path, Vocabulary | None], Import]
    write: Callable[[Weights], tuple[dict[str, Any], dict[str, np.ndarray]]]


def class_of(config: Mapping[str, Any]) -> str:
    """The class of transformers that a config.json names, such as BertForMaskedLM, or ''."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def check_layers(layers: int, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Raises UserError for more layers than tensors: to be called before a table is made with a row for each."""
    if layers > len(tensors):
        raise UserError(f"{where}: its config has {layers} layers and there are {len(tensors)} tensors: both must belong together")
