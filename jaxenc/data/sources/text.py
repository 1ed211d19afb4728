"""Single-stream rows: the documents one after another, cut where a row is full."""

import dataclasses

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.sources.source import fields, framed, laid
from jaxenc.data.store import Bits, Concatenation, Shards


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
        shape, starts = (len(indices), self.length), np.asarray(indices, np.int64) * width
        held = np.minimum(width, len(self.shards.tokens) - starts)
        begins = np.arange(len(indices)) * self.length

        def row(table: Concatenation | Bits, pad: int, begin: int, end: int) -> np.ndarray:
            out = laid(table, shape, pad, begins + ends, starts, held)
            if ends:
                out[:, 0], out.reshape(-1)[begins + held + 1] = begin, end
            return out

        tokens = row(self.shards.tokens, vocabulary.pad, vocabulary.cls, vocabulary.sep)
        out = {"tokens": tokens, "types": np.zeros_like(tokens), **framed(self.length, epoch, indices, held + 2 * ends)}
        if self.shards.manifest.has_words:
            out["word_starts"] = row(self.shards.words, 0, 1, 1)
            out["word_starts"][:, ends] = 1
        return out
