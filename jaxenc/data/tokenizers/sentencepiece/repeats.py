"""Breaks up text that repeats, so that the trainer of the sentencepiece library reads it in linear time.

The trainer takes its first pieces from every string that occurs twice, across ends of sentences too, and reads each such string to its end
from each of its characters. A passage of n characters that occurs again costs n²/2 steps: 40,000 characters given twice take minutes
(sentencepiece 0.2.2).

A piece lies within a word, and everything is counted by word, so where sentences end hardly changes a vocabulary. So in text that repeats,
chance decides which blanks and line ends end a sentence, and two copies of a passage soon differ. What may change are the first pieces: the
trainer takes no string that is always followed by the same character. A word that was always followed by an end, such as a whole line in
a script without blanks, may now be one. FREE leaves text that is read in seconds as it is.
"""

from collections.abc import Iterable, Iterator

import numpy as np

WINDOW = 32  # characters whose hash is compared with those of earlier windows
LEAST = 32  # a text repeats once this many windows in a row have occurred before
FREE, EACH = 1 << 28, 16  # texts stay as they are while the trainer takes at most FREE + EACH * characters steps, of 30 ns each
WORD, PART = 512, 64  # in text that repeats: a word is kept whole up to WORD characters, and the rest cut into parts of PART on average
CHUNK = 1 << 12  # characters that are hashed together; a repetition within a chunk is not seen
BITS = 28  # of a hash: the table of windows takes 32 MiB
FULL = 1 << BITS - 1  # windows in the table before it is emptied: half of its bits, so that LEAST false matches in a row are rare
BASE = 0x9E3779B97F4A7C15  # of the polynomial that is the hash of a window, modulo 2^64
BLANK, END = 0x20, 0x0A


def broken(texts: Iterable[str]) -> Iterator[str]:
    """`texts`, read once, with other ends where they repeat. They hold no line ends.

    Texts come through as they are until the trainer would take more than FREE + EACH * characters steps. After that, in a passage of at
    least WINDOW + LEAST characters that occurred before, each blank or end becomes an end with a chance of 1/4 and a blank otherwise, and
    words of more than WORD characters are cut. Equal texts give equal results.
    """
    passages, held = Passages(), list[str]()
    for chunk in _chunks(texts):
        *ended, rest = passages.broken(chunk).split("\n")
        for part in ended:
            yield "".join([*held, part])
            held = []
        held.append(rest)
    if any(held):
        yield "".join(held)


class Passages:
    """Owns the table of the windows that occurred so far in a text, which comes in chunks."""

    def __init__(self) -> None:
        self.steps, self.characters = 0, 0  # that the trainer would take, and has read, of the texts as they are
        self._table, self._held = np.zeros(1 << BITS - 3, np.uint8), 0
        self._before = np.zeros(WINDOW - 1, np.uint64)
        self._run = self._word = 0
        self._draws = np.random.PCG64(0)

    def broken(self, chunk: str) -> str:
        """The chunk, with other ends where it repeats earlier chunks."""
        codes = np.frombuffer(chunk.encode("utf-32-le"), "<u4")
        ends = (codes == BLANK) | (codes == END)
        runs, words = _streaks(self._seen(codes), self._run), _streaks(~ends, self._word)
        self._run, self._word = int(runs[-1]), int(words[-1])
        self.steps, self.characters = self.steps + int(runs.sum()), self.characters + len(codes)
        if self.steps <= FREE + EACH * self.characters:
            return chunk
        again, draws = runs >= LEAST, self._draws.random_raw(len(codes))
        out = np.where(again & ends, np.where(draws % 4 == 0, END, BLANK), codes)
        inside = again & (words > WORD) & (draws % PART == 0)
        return np.insert(out, np.flatnonzero(inside), END).astype("<u4").tobytes().decode("utf-32-le")

    def _seen(self, codes: np.ndarray) -> np.ndarray:
        """bool [n]: whether the window that ends at each character occurred in an earlier chunk. Adds the windows to the table."""
        codes = np.concatenate([self._before, codes])
        self._before = codes[1 - WINDOW :]
        hashes, step = codes.copy(), 1
        while step < WINDOW:
            hashes[step:] += hashes[:-step] * np.uint64(pow(BASE, step, 1 << 64))
            step *= 2
        places = hashes[WINDOW - 1 :] * np.uint64(BASE) >> np.uint64(64 - BITS)
        slots, bits = places >> np.uint64(3), np.uint8(1) << (places & np.uint64(7)).astype(np.uint8)
        seen = self._table[slots] & bits > 0
        if self._held > FULL:
            self._table[:], self._held = 0, 0
        np.bitwise_or.at(self._table, slots, bits)
        self._held += int((~seen).sum())
        return seen


def _chunks(texts: Iterable[str]) -> Iterator[str]:
    """The characters of `texts`, an end after each, in chunks of at most CHUNK."""
    held, size = list[str](), 0
    for text in texts:
        held += (text, "\n")
        size += len(text) + 1
        if size >= CHUNK:
            yield from _slices("".join(held))
            held, size = [], 0
    yield from _slices("".join(held))


def _slices(text: str) -> Iterator[str]:
    return (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def _streaks(flags: np.ndarray, before: int) -> np.ndarray:
    """int64 [n]: how many flags in a row are set up to and including each. before: how many are set right before the first."""
    at = np.arange(1, len(flags) + 1)
    last = np.maximum.accumulate(np.where(flags, 0, at))
    return at - last + before * (last == 0)
