"""Single-stream rows: the documents one after another, cut every length - 2 tokens."""

import dataclasses

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.sources.source import FIELDS, framed
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Text:
    """Row i is CLS, the tokens i * (length - 2) to (i + 1) * (length - 2) of the split, SEP; the last row is padded.

    An epoch shows every token exactly once; a row may begin in one document and end in another.
    """

    shards: Shards
    length: int
    fields = FIELDS

    @property
    def fingerprint(self) -> str:
        return fingerprint([self.shards.manifest.fingerprint, self.shards.split, "text", self.length])

    def __len__(self) -> int:
        return -(-len(self.shards.tokens) // (self.length - 2))

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        vocabulary, width = self.shards.manifest.tokenizer, self.length - 2
        starts = np.asarray(indices, np.int64) * width
        held = np.minimum(width, len(self.shards.tokens) - starts)
        tokens = np.empty((len(starts), self.length), np.int32)
        tokens[:, 0], tokens[:, -1] = vocabulary.cls, vocabulary.sep
        tokens[:, 1:-1] = self.shards.window(starts, width)
        for row in np.flatnonzero(held < width):
            tokens[row, held[row] + 1], tokens[row, held[row] + 2 :] = vocabulary.sep, vocabulary.pad
        return {"tokens": tokens, "types": np.zeros_like(tokens), **framed(self.length, epoch, indices, held + 2)}
