"""Rows of whole sentences, packed until no more fit: full_sentences and doc_sentences of RoBERTa (Liu et al. 2019, section 4.2)."""

import dataclasses
import functools

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.ranges import numbers
from jaxenc.data.sources import grid
from jaxenc.data.sources.source import fields, framed, laid
from jaxenc.data.store import Bits, Concatenation, Shards


@dataclasses.dataclass(frozen=True)
class WholeSentences:
    """A row is CLS, the sentences after those of the row before, as many as fit length - 2 tokens, SEP, padding.

    crosses: a row goes on into the next document, with one more SEP between two documents that takes a place as a token does
    (`full_sentences`, which published RoBERTa was trained on); else a row ends with its document (`doc_sentences`). A sentence longer
    than length - 2 tokens is cut into pieces of that length, and what is left of it is packed like a sentence. So an epoch shows every
    token exactly once, in the order of the data.

    Rows are filled by the rule of the break modes `complete` and `complete_doc` of fairseq:fairseq/data/token_block_utils_fast.pyx.
    Unlike there, no row starts or ends with the SEP between documents, a long sentence is not a row of its own that loses its end,
    doc_sentences keeps a document of one token, and there is no SEP after each line of the corpus. Liu et al. enlarge the batch of
    doc_sentences to as many tokens as full_sentences has; here a batch is a number of rows.
    """

    shards: Shards
    length: int
    crosses: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of every source."""
        return fields(self.shards)

    @property
    def _kind(self) -> str:
        return "full_sentences" if self.crosses else "doc_sentences"

    @property
    def fingerprint(self) -> str:
        return fingerprint([self.shards.manifest.fingerprint, self.shards.split, self._kind, self.length])

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """Offset of the first token of each row, int64 [rows + 1]; the last item is the number of tokens."""
        name = f"{self._kind}-{self.shards.split}-{self.length - 2}"
        return grid.kept(self.shards, name, len(self.shards.tokens), self._grid)

    @functools.cached_property
    def _documents(self) -> np.ndarray:
        return grid.document_starts(self.shards)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        vocabulary, shape = self.shards.manifest.tokenizer, (len(indices), self.length)
        starts, ends = self._starts[indices], self._starts[np.asarray(indices) + 1]
        # A run is the text of one document in one row; after each is a separator.
        first, last = (np.searchsorted(self._documents, at, "right") for at in (starts, ends - 1))
        counts = last - first + 1
        row, number = np.repeat(np.arange(len(counts)), counts), numbers(counts)
        border = lambda document: self._documents[np.minimum(document, len(self._documents) - 1)]
        begins = np.where(number == 0, starts[row], border(first[row] + number - 1))
        sizes = np.where(number == counts[row] - 1, ends[row], border(first[row] + number)) - begins
        at = row * self.length + 1 + begins - starts[row] + number

        def lay(table: Concatenation | Bits, pad: int, begin: int, end: int) -> np.ndarray:
            out = laid(table, shape, pad, at, begins, sizes)
            out[:, 0], out.reshape(-1)[at + sizes] = begin, end
            return out

        tokens = lay(self.shards.tokens, vocabulary.pad, vocabulary.cls, vocabulary.sep)
        out = {"tokens": tokens, "types": np.zeros_like(tokens), **framed(self.length, epoch, indices, ends - starts + counts + 1)}
        if self.shards.manifest.has_words:
            out["word_starts"] = lay(self.shards.words, 0, 1, 1)
            out["word_starts"][:, 1] = 1
        return out

    def _grid(self) -> np.ndarray:
        """One part of the store at a time, so that memory is that of a part and of the result.

        Every place is counted in a stream in which each document but the first has a separator before it: a row is what lies between
        two places of this stream, and the row that a part leaves unfinished is known by the place where it starts.
        """
        width, out, open_row = self.length - 2, [], -self.length
        for p in range(len(self.shards.tokens.parts)):
            offsets, sizes, document = self._pieces(p)
            places = offsets + self.shards.tokens.starts[p] + document + self.shards.documents.starts[p]
            ends = places + sizes
            after = np.searchsorted(ends, places + width, "right")
            first = int(np.searchsorted(ends, open_row + width, "right"))
            if not self.crosses:
                after, first = np.minimum(after, np.searchsorted(document, document, "right")), 0
            rows = grid.chain(after, first)
            open_row = places[rows[-1]] if len(rows) else open_row
            out.append(offsets[rows] + self.shards.tokens.starts[p])
        return np.concatenate([*out, [len(self.shards.tokens)]]).astype(np.int64)

    def _pieces(self, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(offset, tokens, document) of the sentences of part p, int64 and local to it; those longer than a row cut in pieces."""
        width, starts = self.length - 2, self.shards.sentences.parts[p].astype(np.int64)
        sizes = np.diff(starts, append=len(self.shards.tokens.parts[p]))
        count = -(-sizes // width)
        nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        offsets = np.repeat(starts, count) + nth * width
        document = np.searchsorted(self.shards.documents.parts[p], np.arange(len(starts), dtype=np.uint32), "right") - 1
        return offsets, np.minimum(width, np.repeat(starts + sizes, count) - offsets), np.repeat(document, count)
