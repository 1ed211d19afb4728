"""A cache of the ids of words, for corpus mode: a word that was seen before is looked up instead of tokenised again.

A word here goes from the first of a run of blanks (U+0020), or from the start of the text, to the next such blank. The ids of a text are
those of its words, one after the other, if each of them is tokenised by itself (separate.py says which are). Any other text is encoded
whole.
"""

import dataclasses
import threading
from collections.abc import Callable, Sequence

import numpy as np

from jaxenc.data.tokenizers.word_table import WordTable

BLANK = 0x20
MOST_BYTES = 100 << 20  # of memory for the cache: about a million words of English
WHOLE = 0  # the number of all words that are not tokenised by themselves

Words = Sequence[tuple[Sequence[int], Sequence[int]]]


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The ids of texts, one text after the other. tokens: u32 [n]; lengths: i64 [texts], the ids of each text; words: bool [n], whether
    an id is the first of its word."""

    tokens: np.ndarray
    lengths: np.ndarray
    words: np.ndarray


def flat(encoded: Words) -> Encoded:
    """Texts as `Tokenizer.encode_words` gives them: of each its ids, and of each id the number of its word."""
    lengths = np.array([len(ids) for ids, _ in encoded], np.int64)
    size = int(lengths.sum())
    tokens = np.fromiter((index for ids, _ in encoded for index in ids), np.uint32, size)
    numbers = np.fromiter((number for _, numbers in encoded for number in numbers), np.int64, size)
    words = np.ones(size, bool)
    words[1:] = numbers[1:] != numbers[:-1]
    words[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    return Encoded(tokens, lengths, words)


class WordCache:
    """Owns the ids of words seen before. It is emptied at the first call that finds it larger than MOST_BYTES. The tokenizer must not
    change."""

    def __init__(
        self,
        encode: Callable[[Sequence[str]], Words],
        separate: Callable[[str], bool],
        by_word: Callable[[Sequence[str]], Encoded] | None = None,
    ):
        """encode: of texts, as `Tokenizer.encode_words`. separate: whether a word, with the blanks before it, is tokenised by itself.
        by_word: `flat` of what `encode` gives for such words, if there is a faster way."""
        self._encode, self._separate, self._lock = encode, separate, threading.Lock()
        self._by_word = by_word or (lambda words: flat(self._encode(words)))
        self._forget()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        return self._table.nbytes + self._begins.nbytes + self._ids.nbytes

    def encode(self, texts: Sequence[str]) -> Encoded:
        """As `flat` of what the library returns for `texts`. It may be called from several threads."""
        raw = [text.encode() for text in texts]
        buffer = b"".join(raw)
        starts, firsts = _words(buffer, np.array([len(one) for one in raw], np.int64))
        with self._lock:
            numbers = self._numbers(buffer, starts, np.diff(starts, append=len(buffer)))
            known = self._known(numbers, firsts)
        whole = np.diff(_sums(numbers == WHOLE)[firsts]) > 0
        if not whole.any():
            return known
        return merged(known, flat(self._encode([text for text, one in zip(texts, whole, strict=True) if one])), whole)

    def _forget(self) -> None:
        self._table = WordTable()
        # By number: where the ids of a word begin; those of the next word begin where they end.
        self._begins, self._held = np.zeros(1 << 10, np.int32), 1
        # Twice the id, plus 1 where the word splitter of the vocabulary starts a word.
        self._ids = np.zeros(1 << 10, np.uint32)

    def _numbers(self, buffer: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """int32 [words]: the number of each word; new words get one."""
        if self.nbytes > MOST_BYTES:
            self._forget()
        found = self._table.find(buffer, starts, lengths)
        new = np.flatnonzero(found < 0)
        if len(new):
            places = zip(starts[new].tolist(), (starts + lengths)[new].tolist(), strict=True)
            self._add(list(dict.fromkeys(buffer[start:end] for start, end in places)))
            found[new] = self._table.find(buffer, starts[new], lengths[new])
        return found

    def _add(self, words: list[bytes]) -> None:
        texts = [word.decode() for word in words]
        separate = np.array([self._separate(text) for text in texts], bool)
        encoded = self._by_word([text for text, one in zip(texts, separate, strict=True) if one])
        numbers = np.full(len(words), WHOLE, np.int32)
        held, begin = self._held, int(self._begins[self._held])
        self._held, end = held + len(encoded.lengths), begin + len(encoded.tokens)
        numbers[separate] = np.arange(held, self._held)
        self._table.add(words, numbers)
        self._begins, self._ids = _room(self._begins, self._held + 1), _room(self._ids, end)
        self._begins[held + 1 : self._held + 1] = begin + np.cumsum(encoded.lengths)
        self._ids[begin:end] = 2 * encoded.tokens + encoded.words

    def _known(self, numbers: np.ndarray, firsts: np.ndarray) -> Encoded:
        """The ids of the words with these numbers. firsts: i64 [texts + 1], the place of each text's first word."""
        begins = self._begins[numbers]
        ends = _sums(self._begins[numbers + 1] - begins)
        ids = self._ids[np.repeat(begins - ends[:-1], np.diff(ends)) + np.arange(ends[-1])]
        return Encoded(ids >> np.uint32(1), np.diff(ends[firsts]), (ids & np.uint32(1)).astype(bool))


def _room(array: np.ndarray, size: int) -> np.ndarray:
    """`array`, or where it has fewer than `size` places a copy of it with a quarter more than are needed."""
    return array if size <= len(array) else np.concatenate([array, np.zeros(size + size // 4 - len(array), array.dtype)])


def _words(buffer: bytes, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where words start, the number of each text's first word and of the one after the last) of texts of `sizes` bytes in `buffer`."""
    blank, ends = np.frombuffer(buffer, np.uint8) == BLANK, _sums(sizes)
    starts = blank.copy()
    starts[1:] &= ~blank[:-1]
    starts[ends[:-1][sizes > 0]] = True
    places = np.flatnonzero(starts)
    return places, np.searchsorted(places, ends)


def _sums(counts: np.ndarray) -> np.ndarray:
    """i64 [n + 1]: 0 and the running sums of `counts`."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def merged(known: Encoded, other: Encoded, whole: np.ndarray) -> Encoded:
    """`known`, with the texts of `other` instead of those in `whole` (bool [texts])."""
    lengths = known.lengths.copy()
    lengths[whole] = other.lengths
    there, kept = np.repeat(whole, lengths), ~np.repeat(whole, known.lengths)
    tokens, words = np.empty(len(there), np.uint32), np.empty(len(there), bool)
    for out, mine, theirs in ((tokens, known.tokens, other.tokens), (words, known.words, other.words)):
        out[there], out[~there] = theirs, mine[kept]
    return Encoded(tokens, lengths, words)
