"""Which rows of a source each batch holds: the order of a run, and one pass of an evaluation."""

import dataclasses

import numpy as np

from jaxenc.data.batch import Batch, pad_rows
from jaxenc.data.random import permuted
from jaxenc.data.sources import Source


@dataclasses.dataclass(frozen=True)
class Order:
    """The batches of a run: the rows of a source, in another order in every epoch.

    batch: rows of the global batch. part: see `feistel`.
    """

    source: Source
    batch: int
    seed: int
    part: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.fields

    def __len__(self) -> int:
        return -(-len(self.source) // self.batch)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of step t is row g = t * batch + s of the run: row g mod N of epoch g div N, shuffled within the epoch.

        Epochs follow each other without a gap, so a batch may hold the end of one and the start of the next.
        """
        rows = np.arange(self.batch, dtype=np.int64)[slots] + step * self.batch
        epochs, places = np.divmod(rows, len(self.source))
        if not len(rows):
            raise ValueError(f"no slot of {self.batch} in {slots}")
        parts = [self.source.rows(int(epoch), self._indices(int(epoch), places[epochs == epoch])) for epoch in np.unique(epochs)]
        return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _indices(self, epoch: int, places: np.ndarray) -> np.ndarray:
        return permuted(len(self.source), self.seed, epoch, places, self.part)


@dataclasses.dataclass(frozen=True)
class Pass:
    """The batches of an evaluation: the first `rows` rows of epoch 0 (0 = all) once each, in order; padding rows fill the last batch."""

    source: Source
    batch: int
    rows: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.fields

    @property
    def _end(self) -> int:
        return min(self.rows or len(self.source), len(self.source))

    def __len__(self) -> int:
        return -(-self._end // self.batch)

    def batch_at(self, step: int, slots: slice = slice(None)) -> Batch:
        """Slot s of batch t is row t * batch + s; see Batches."""
        indices = np.arange(self.batch, dtype=np.int64)[slots] + step * self.batch
        real = np.count_nonzero(indices < self._end)
        read = self.source.rows(0, np.minimum(indices, self._end - 1))
        return pad_rows({name: array[:real] for name, array in read.items()}, len(indices))
