"""Writes the token shards of one split of a data folder; `store.py` reads them."""

import contextlib
import dataclasses
from pathlib import Path
from typing import IO

import numpy as np

from jaxenc.data.manifest import Shard, Split
from jaxenc.data.tokenizers.marks import Marks

SHARD_TOKENS = 1 << 26  # a shard ends with the first piece that reaches this
SUFFIXES = ("tokens", "words", "sentences", "documents")


@dataclasses.dataclass(frozen=True)
class Piece:
    """What one group of documents gives to one split.

    tokens: ids, flat; words: bool, whether each is the first piece of its word; sentences: tokens of each sentence; documents:
    sentences of each document; the counts as in `Split`; marks: counted in a sample of the text, all zero where the tokenizer loses none.
    """

    tokens: np.ndarray
    words: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    unknown: int
    empty_sentences: int
    empty_documents: int
    marks: Marks = Marks()


class ShardWriter:
    """Appends pieces to the numbered shards of one split; a shard ends with the piece that fills it. total: what was added.

    A shard's files hold little-endian numbers: .tokens the ids; .words a bit a token, eight in a byte from its lowest bit on, 1 where
    the token is the first piece of its word, zeros after the last; .sentences (u32) the offset in the shard of each sentence's first
    token; .documents (u32) the number in the shard of each document's first sentence.
    """

    def __init__(self, folder: Path, split: str, dtype: str):
        self._folder, self._split, self._dtype = folder, split, dtype
        self._stack = contextlib.ExitStack()
        self._files: list[IO[bytes]] = []
        self._open = Shard("", 0, 0, 0, 0)
        self._bits = np.zeros(0, bool)  # those of .words that do not fill a byte yet
        self.total = Split()

    def add(self, piece: Piece) -> None:
        """Appends one piece; it opens a new shard where none is open."""
        counts = {name: getattr(piece, name) for name in ("unknown", "empty_sentences", "empty_documents")}
        counts |= {name: len(getattr(piece, name)) for name in ("tokens", "sentences", "documents")}
        self.total = dataclasses.replace(self.total, **{name: getattr(self.total, name) + n for name, n in counts.items()})
        if not len(piece.tokens):
            return
        if not self._files:
            name = f"{self._split}-{len(self.total.shards):05d}"
            self._open = Shard(name, 0, 0, 0, 0)
            paths = [self._folder / f"{name}.{suffix}" for suffix in SUFFIXES]
            self._files = [self._stack.enter_context(path.open("wb")) for path in paths]
        held = self._open
        starts = held.tokens + np.cumsum(piece.sentences) - piece.sentences
        firsts = held.sentences + np.cumsum(piece.documents) - piece.documents
        bits = np.concatenate([self._bits, piece.words])
        whole = len(bits) // 8 * 8
        self._bits = bits[whole:]
        arrays = (piece.tokens, np.packbits(bits[:whole], bitorder="little"), starts, firsts)
        for file, array, dtype in zip(self._files, arrays, (self._dtype, "uint8", "uint32", "uint32"), strict=True):
            file.write(array.astype(np.dtype(dtype).newbyteorder("<")).tobytes())
        self._open = Shard(
            held.name,
            held.documents + len(firsts),
            held.sentences + len(starts),
            held.tokens + len(piece.tokens),
            max(held.highest, int(piece.tokens.max())),
        )
        if self._open.tokens >= SHARD_TOKENS:
            self.close()

    def close(self) -> None:
        """Ends the open shard, if there is one."""
        with self._stack:
            if self._files:
                self._files[SUFFIXES.index("words")].write(np.packbits(self._bits, bitorder="little").tobytes())
        if self._files:
            self.total = dataclasses.replace(self.total, shards=(*self.total.shards, self._open))
        self._files, self._bits = [], np.zeros(0, bool)
