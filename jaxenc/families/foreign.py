"""The contract between a family and the converters: how its models are read from and written to the files of other projects."""

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
    """A model with its heads, independent of the objective that trained it.

    heads: names of built-in heads, in the order of `heads.BUILT_IN`; labels: the names of the classes, () where no head classifies;
    pooler_activation: of the head `pooler`, if there is one; dropout: {head: rate on its input}, where it is not the family's.
    """

    model: ModelConfig
    heads: tuple[str, ...]
    labels: tuple[str, ...] = ()
    pooler_activation: str = TANH
    dropout: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Import:
    """A model read from the files of another project, before its tensors are renamed.

    tensors: the tensors of the files, by the names that `entries` uses; a tensor that holds several of our leaves is split into parts.
    entries: the key map. skipped: patterns of tensor names that are not parameters. optim: fields of `optim` that such models were trained
    with, where they differ from the defaults. unstated: fields of the run that the files do not state; note: the start of the message to
    the user about these, '' for no message. notes: other messages to the user, one line each: what the files contradict.
    """

    structure: Structure
    tensors: Mapping[str, Tensor]
    entries: tuple[Entry, ...]
    skipped: tuple[str, ...] = ()
    optim: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unstated: tuple[str, ...] = ()
    note: str = ""
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Weights:
    """A model to export. vocabulary: its tokenizer's, None without one."""

    structure: Structure
    vocabulary: Vocabulary | None
    params: Tree


@dataclasses.dataclass(frozen=True)
class Export:
    """A model in the format of transformers. config: its config.json; entries: the key map; params: the parameters that `entries` names.

    For `convert --check`: the first of the config's `architectures` opens it, `pad_token_id` pads its rows on the side `padding`, and
    `outputs` maps each of our outputs but the hidden states to the attributes of what that class returns. last_token: the argument by which
    that class is given the place of each row's last token, '' where it finds it or needs none.
    """

    config: dict[str, Any]
    entries: tuple[Entry, ...]
    params: Tree
    outputs: Mapping[str, tuple[str, ...]]
    padding: str = "right"
    last_token: str = ""


# (content of the config file, {name: tensor} of the weights, path of the config, which every message begins with) -> Import.
Reader = Callable[[Mapping[str, Any], Mapping[str, Tensor], Path], Import]


@dataclasses.dataclass(frozen=True)
class Folders:
    """A model of ours that is several models in transformers, each in its own folder.

    names: of the folders; split: {name: its model}, {} for a model that is one there too; join: the inverse, with a message for the user,
    '' for none. Both raise UserError, `join` for models that do not belong together.
    """

    names: tuple[str, ...]
    split: Callable[[Weights], Mapping[str, Weights]]
    join: Callable[[Mapping[str, Weights]], tuple[Weights, str]]


@dataclasses.dataclass(frozen=True)
class Transformers:
    """Folders of transformers. model_types: the values of `model_type` in their config.json; read: from such a folder; write: to one;
    several: None where a model is always a single one in transformers. `read` and `write` raise UserError for a model that cannot be
    converted."""

    model_types: tuple[str, ...]
    read: Reader
    write: Callable[[Weights], Export]
    several: Folders | None = None


@dataclasses.dataclass(frozen=True)
class Google:
    """TensorFlow checkpoints of the paper's authors. base: the common prefix of their tensor names; config: the name of the config file
    next to the weights, '' where the weights are enough; read: raises UserError for a model that cannot be converted."""

    base: str
    config: str
    read: Reader


@dataclasses.dataclass(frozen=True)
class AllenNlp:
    """An options.json and weights in HDF5. read: as `Reader`, with the vocabulary of the word list as a fourth argument, None without one;
    write: (the options, {name: array} of the weights). Both raise UserError for a model that cannot be converted."""

    read: Callable[[Mapping[str, Any], Mapping[str, Tensor], Path, Vocabulary | None], Import]
    write: Callable[[Weights], tuple[dict[str, Any], dict[str, np.ndarray]]]


def class_of(config: Mapping[str, Any]) -> str:
    """The class that a config.json of transformers names, such as BertForMaskedLM, '' where it names none."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def check_layers(layers: int, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Raises UserError for more layers than tensors; call it before building a key map of that many layers."""
    if layers > len(tensors):
        raise UserError(f"its config has {layers} layers but there are {len(tensors)} tensors", where, "use the config of these weights")
