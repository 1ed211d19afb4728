"""Single-stream rows: the documents one after another, cut every length - 2 tokens."""

import dataclasses

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.sources.source import fields, framed
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Text:
    """Row i is CLS, the tokens i * (length - 2) to (i + 1) * (length - 2) of the split, SEP; the last row is padded.

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

    def __len__(self) -> int:
        return -(-len(self.shards.tokens) // (self.length - 2))

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        vocabulary, width = self.shards.manifest.tokenizer, self.length - 2
        starts = np.asarray(indices, np.int64) * width
        held = np.minimum(width, len(self.shards.tokens) - starts)
        tokens = _laid(self.shards.window(starts, width), held, vocabulary.cls, vocabulary.sep, vocabulary.pad)
        out = {"tokens": tokens, "types": np.zeros_like(tokens), **framed(self.length, epoch, indices, held + 2)}
        if self.shards.manifest.has_words:
            out["word_starts"] = _laid(self.shards.words.window(starts, width), held, 1, 1, 0)
            out["word_starts"][:, 1] = 1
        return out


def _laid(body: np.ndarray, held: np.ndarray, cls: int, sep: int, pad: int) -> np.ndarray:
    """i32 [n, length]: cls, the first `held` values of each row of `body` [n, length - 2], sep, padding."""
    out = np.empty((len(body), body.shape[1] + 2), np.int32)
    out[:, 0], out[:, 1:-1], out[:, -1] = cls, body, sep
    for row in np.flatnonzero(held < body.shape[1]):
        out[row, held[row] + 1], out[row, held[row] + 2 :] = sep, pad
    return out
