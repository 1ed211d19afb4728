"""Single-stream rows: the documents one after another, cut where a row is full."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.sources.source import fields, framed
from jaxenc.data.store import Shards


@dataclasses.dataclass(frozen=True)
class Text:
    """Row i is CLS, the tokens i * (length - 2) to (i + 1) * (length - 2) of the split, SEP; the last row is padded. Of a vocabulary
    without CLS or SEP it is the tokens i * length to (i + 1) * length alone.

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
    def _ends(self) -> int:
        """Places at each end of a row that hold no text."""
        return int(self.shards.manifest.tokenizer.frames)

    @property
    def _width(self) -> int:
        return self.length - 2 * self._ends

    def __len__(self) -> int:
        return -(-len(self.shards.tokens) // self._width)

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        vocabulary, width, ends = self.shards.manifest.tokenizer, self._width, self._ends
        starts = np.asarray(indices, np.int64) * width
        held = np.minimum(width, len(self.shards.tokens) - starts)
        tokens = _laid(self.shards.window(starts, width), held, [vocabulary.cls] * ends, [vocabulary.sep] * ends, vocabulary.pad)
        out = {"tokens": tokens, "types": np.zeros_like(tokens), **framed(self.length, epoch, indices, held + 2 * ends)}
        if self.shards.manifest.has_words:
            out["word_starts"] = _laid(self.shards.words.window(starts, width), held, [1] * ends, [1] * ends, 0)
            out["word_starts"][:, ends] = 1
        return out


def _laid(body: np.ndarray, held: np.ndarray, begin: Sequence[int], end: Sequence[int], pad: int) -> np.ndarray:
    """i32 [n, length]: `begin`, the first `held` values of each row of `body` [n, length less both ends], `end`, padding."""
    first, last = len(begin), len(begin) + body.shape[1]
    out = np.empty((len(body), last + len(end)), np.int32)
    out[:, :first], out[:, first:last], out[:, last:] = begin, body, end
    for row in np.flatnonzero(held < body.shape[1]):
        stop = first + held[row]
        out[row, stop : stop + len(end)], out[row, stop + len(end) :] = end, pad
    return out
