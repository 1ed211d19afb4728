"""What a family of models says of its files: all that the converters ask of it."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxenc.errors import UserError
from jaxenc.formats.key_map import Entry
from jaxenc.formats.tensor import Tensor
from jaxenc.inference.load import Model
from jaxenc.training.run import Run
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class Import:
    """How files of theirs become a model of ours. entries: the key map; skipped: patterns of their names that hold no parameter; stacked:
    names of tensors that hold what several leaves are, of which `entries` name the slices as `tensor.unstacked` does; note: a line for
    people on what the run says and the files do not."""

    run: Run
    entries: tuple[Entry, ...]
    skipped: tuple[str, ...] = ()
    stacked: tuple[str, ...] = ()
    note: str = ""


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


class Google(NamedTuple):
    """TensorFlow checkpoints of the paper's authors. base: what their names begin with; config: name of the file beside the weights, ''
    where the weights tell all; read: what both become."""

    base: str
    config: str
    read: Reader


class Several(NamedTuple):
    """Runs that train several models of transformers. folders: what these are called, as subfolders; split: {one of them: its model},
    {} for a run of one model alone; join: the way back, which raises UserError for models that do not belong together."""

    folders: tuple[str, ...]
    split: Callable[[Model], Mapping[str, Model]]
    join: Callable[[Mapping[str, Model]], Model]


@dataclasses.dataclass(frozen=True)
class Family:
    """An entry of `FAMILIES`, under the `kind` of its config and under each model_type that transformers has for it.

    read: a folder of transformers, whose config names its model_type; write: the way back; google: None where the authors published no
    TensorFlow checkpoint; several: None where a run always is one model. Readers and `write` raise UserError for what cannot be
    converted.
    """

    read: Reader
    write: Callable[[Model], Export]
    google: Google | None = None
    several: Several | None = None


def class_of(config: Mapping[str, Any]) -> str:
    """The class of transformers that a config.json names, such as BertForMaskedLM, or ''."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def check_layers(layers: int, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Raises UserError for more layers than tensors: to be called before a table is made with a row for each."""
    if layers > len(tensors):
        raise UserError(f"{where}: its config has {layers} layers and there are {len(tensors)} tensors: both must belong together")
