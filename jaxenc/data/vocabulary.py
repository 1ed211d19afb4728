"""What a model needs to know of a tokenizer: its size and its special ids."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Facts of a tokenizer, as a data manifest and a checkpoint store them.

    size: the number of ids a model predicts, before any padding of the table. pad, unk, cls, sep, mask: their ids; cls, sep and mask are -1
    where the vocabulary has none. cls opens a row and sep ends it, as CLS and SEP elsewhere. reserved: ids that are not text, sorted: the
    specials and unused slots, which a clean random replacement never draws. fingerprint: the tokenizer's, '' when no tokenizer is named.
    eod: the id that ends a document, -1 where the vocabulary has none. words: of a vocabulary of words, how many ids a text may hold: those
    from `size` on are read and predicted as `unk`; 0 where these are the same `size` ids.
    """

    size: int
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    reserved: tuple[int, ...]
    fingerprint: str
    eod: int = -1
    words: int = 0

    @property
    def frames(self) -> bool:
        """Whether there are ids for both ends of a row."""
        return self.cls >= 0 and self.sep >= 0

    def is_unknown(self, tokens: np.ndarray) -> np.ndarray:
        """Whether each of `tokens` (integers, any shape) is predicted as the unknown one: bool, of the same shape."""
        return (tokens == self.unk) | (tokens >= self.size)

    @property
    def unknown_name(self) -> str:
        """How messages call the tokens of `is_unknown`: a word beyond `size` has an id of its own, and is only predicted as unknown."""
        return "predicted as unknown" if self.words else "unknown"

    @property
    def ids(self) -> int:
        """How many ids a text may hold."""
        return self.words or self.size


def unnamed(size: int) -> Vocabulary:
    """`size` ids of unknown meaning, for a model without a tokenizer. The special ids mean nothing."""
    return Vocabulary(size, pad=0, unk=0, cls=0, sep=0, mask=0, reserved=(), fingerprint="")


def of_words(size: int) -> Vocabulary:
    """The layout of a list of `size` words: <S> 0, </S> 1, <UNK> 2, then words by falling frequency (README.md of allenai/bilm-tf). It
    has no mask and no id for padding, which is known from `segments` alone: a place of padding holds 0."""
    return Vocabulary(size, pad=0, unk=2, cls=0, sep=1, mask=-1, reserved=tuple(range(min(3, size))), fingerprint="")


def padded(vocab_size: int) -> int:
    """Rows that a table of `vocab_size` tokens is stored with: the next multiple of 128, so that it splits over 2, 4 or 8 devices."""
    return -(-vocab_size // 128) * 128
