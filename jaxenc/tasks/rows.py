"""The features of a task as batches of a run."""

import dataclasses
import hashlib
from collections.abc import Mapping

import numpy as np

from jaxenc.data.batch import Batch, Field
from jaxenc.data.order import Order, Pass
from jaxenc.data.pipeline import Batches
from jaxenc.tasks.task import Features


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureRows:
    """A source of the rows of `features`; see `data.sources.source.Source`."""

    features: Features

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the features, and the number of a row."""
        return (*self.features.rows, "index", "epoch")

    @property
    def length(self) -> int:
        """Tokens in a row."""
        return self.features.rows["segments"].shape[-1]

    @property
    def fingerprint(self) -> str:
        """sha256 of every value, with the names, shapes and dtypes."""
        found = hashlib.sha256()
        for name, array in sorted(self.features.rows.items()):
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self.features)

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """The rows `indices` (int64 [n])."""
        numbers = {"index": indices.astype(np.uint32), "epoch": np.full(len(indices), epoch, np.uint32)}
        return {name: array[indices] for name, array in self.features.rows.items()} | numbers


@dataclasses.dataclass(frozen=True, eq=False)
class Trimmed:
    """`batches` without the padding that no row of a batch needs: each has the shortest of `lengths` that holds its longest row, over the
    rows of all processes.

    shapes: the fields of the objective, which tell the axes along a row. left: padding is on the left.
    """

    batches: Batches
    lengths: tuple[int, ...]
    shapes: Mapping[str, Field]
    left: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the batches."""
        return self.batches.fields

    def __len__(self) -> int:
        return len(self.batches)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """See Batches."""
        whole = self.batches.batch_at(step, slice(None))
        used = int((whole["segments"] > 0).sum(axis=-1).max())
        length = next(length for length in self.lengths if length >= used)
        return {name: self._cut(name, array[slots], length) for name, array in whole.items()}

    def _cut(self, name: str, array: np.ndarray, length: int) -> np.ndarray:
        shape = self.shapes[name].shape
        if "length" not in shape:
            return array
        full = array.shape[1 + shape.index("length")]
        places = slice(full - length, full) if self.left else slice(length)
        return array[(slice(None),) * (1 + shape.index("length")) + (places,)]


def batches(
    features: Features, batch: int, seed: int, evaluation: bool, lengths: tuple[int, ...], shapes: Mapping[str, Field], left: bool
) -> Batches:
    """The batches of a run over `features`: shuffled and endless, or, for an evaluation, every row once in order. The rest as `Trimmed`."""
    source = FeatureRows(features)
    ordered: Batches = Pass(source, batch) if evaluation else Order(source, batch, seed)
    return Trimmed(ordered, lengths, shapes, left) if len(lengths) > 1 else ordered
