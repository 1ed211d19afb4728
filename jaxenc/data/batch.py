"""The batch: a dict of NumPy arrays whose leading axis is the rows, and the table of the fields that any batch may hold."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from jaxenc.data.characters import WIDTH
from jaxenc.errors import UserError

Batch = dict[str, np.ndarray]

# The field of a model that reads words by their characters.
CHARACTERS = "characters"


@dataclasses.dataclass(frozen=True)
class Field:
    """shape: what follows the row axis, `length` standing for the row length; dtype: a NumPy dtype name; least: the lowest integer."""

    shape: tuple[str | int, ...]
    dtype: str
    least: int = 0

    def sized(self, axis: str, size: int) -> "Field":
        """This field with a number instead of a named axis; itself where it does not have the axis."""
        return dataclasses.replace(self, shape=tuple(size if one == axis else one for one in self.shape))


# The labels that heads learn from are fields too: those of `Objective.fields` are these and the labels of its heads.
FIELDS = {
    "tokens": Field(("length",), "int32"),  # ids; the vocabulary's pad where segments is 0
    "types": Field(("length",), "int32"),  # token type (segment A or B of a pair)
    "segments": Field(("length",), "int32"),  # 0 = padding, k = k-th packed text
    "positions": Field(("length",), "int32"),  # 0-based within its text
    "word_starts": Field(("length",), "int32"),  # 1 = first piece of its word, or a special; 0 = a later piece, or padding
    "targets": Field(("length",), "int32"),  # id to predict at each place, below the vocabulary's size; 0 on padding
    CHARACTERS: Field(("length", WIDTH), "uint16"),  # the word at each place as data/characters.py frames it; 0 on padding
    "reverse_tokens": Field(("length",), "int32"),  # these three: of the same text, read from its end to its start
    "reverse_targets": Field(("length",), "int32"),
    "reverse_characters": Field(("length", WIDTH), "uint16"),
    "index": Field((), "uint32"),  # number of the row within its epoch
    "epoch": Field((), "uint32"),
    "direction": Field((), "int32", least=-1),  # 1 = the row is text as it is written, -1 = text from its end to its start
    "fresh": Field((), "int32"),  # 1 = the row starts a stream: it has no text before it
    "is_random": Field((), "int32"),  # next-sentence label: 1 when the second part is not the text after the first
}


def check_fields(names: Iterable[str], needed: Iterable[str], fields: Mapping[str, Field] = FIELDS) -> None:
    """Raises ValueError for a name that `fields` does not list and for a needed field that is absent."""
    names = set(names)
    unknown, missing = sorted(names - set(fields)), sorted(set(needed) - names)
    if unknown or missing:
        raise ValueError(f"batch fields: unknown {unknown}, missing {missing}")


def empty(names: Iterable[str], rows: int, length: int, fields: Mapping[str, Field] = FIELDS) -> Batch:
    """A batch of padding, of those of `fields` that are named: zeros everywhere, so segments say that nothing is there."""
    shape = lambda field: (rows, *(length if axis == "length" else axis for axis in field.shape))
    return {name: np.zeros(shape(fields[name]), fields[name].dtype) for name in names}


def row_length(batch: Mapping[str, Any]) -> int:
    """The number of places in a row of a batch, from its field `segments`."""
    return batch["segments"].shape[-1]


def pad_rows(batch: Mapping[str, np.ndarray], rows: int) -> Batch:
    """`batch` with padding rows (all zero) up to `rows`: a last, shorter batch keeps the compiled shape and weighs nothing."""
    return {name: np.concatenate([a, np.zeros((rows - len(a), *a.shape[1:]), a.dtype)]) for name, a in batch.items()}


def check_ranges(batch: Mapping[str, np.ndarray], bounds: Mapping[str, int], fields: Mapping[str, Field] = FIELDS) -> None:
    """Raises UserError when a value of a field is below the field's lowest or reaches the field's bound; a bound of 0 is none. In a float32
    field only infinite values are refused; NaN means that the value is not known.

    On the host, because JAX clamps an index past the end of a table or returns NaN where other libraries raise.
    """
    for name, bound in bounds.items():
        if fields[name].dtype == "float32" and np.isinf(batch[name]).any():
            raise UserError(f"the rows hold an infinite {name}", fix="use a finite number, or NaN where it is not known")
        if bound and batch[name].size:
            least, low, high = fields[name].least, int(batch[name].min()), int(batch[name].max())
            if low < least or high >= bound:
                held = f"the rows hold {name} from {low} to {high}"
                raise UserError(f"{held}, and the model takes {least} to {bound - 1}", fix="use data made for this model")
