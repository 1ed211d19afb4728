"""Single-stream rows: the documents one after another, cut where a row is full."""

import dataclasses

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.sources.source import fields, framed_texts
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Text:
    """Row i is CLS, the tokens i * (length - 2) to (i + 1) * (length - 2) of the split, SEP; the last row is padded. With a
    vocabulary without CLS or SEP it is the tokens i * length to (i + 1) * length alone.

    An epoch shows every token exactly once; a row may begin in one document and end in another.
    """

    shards: Shards
    length: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of every source."""
        return fields(self.shards)

    @property
    def fingerprint(self) -> str:
        return fingerprint([self.shards.manifest.fingerprint, self.shards.split, "text", self.length])

    @property
    def _width(self) -> int:
        return self.length - 2 * self.shards.manifest.tokenizer.frames

    def __len__(self) -> int:
        return -(-len(self.shards.tokens) // self._width)

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        starts = np.asarray(indices, np.int64) * self._width
        held = np.minimum(self._width, len(self.shards.tokens) - starts)
        return framed_texts(self.shards, self.length, epoch, indices, starts, held)
