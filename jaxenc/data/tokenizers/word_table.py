"""A hash table from words to numbers in NumPy, which looks up many words at once."""

import numpy as np

LONG_ENTRY = 180  # bytes of memory that a word in the dict takes besides its text: two objects and a slot (sys.getsizeof)
SHORT = 15  # bytes; such a word and its length fit a key of 16 bytes, and longer ones go to a dict
KEPT = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # masks of the first 0 to 8 bytes
MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))  # odd multipliers (Fibonacci hashing, Knuth 6.4; xxHash)


class WordTable:
    """Owns the numbers of words in UTF-8. Open addressing with linear probing; at most half of the slots are used."""

    def __init__(self, bits: int = 14):
        """bits: the table starts with 2**bits slots."""
        self._bits, self._held = bits, 0
        self._keys = np.zeros((1 << bits, 2), np.uint64)  # a free slot has the length 0, which no word has
        self._numbers = np.zeros(1 << bits, np.int32)
        self._long: dict[bytes, int] = {}
        self._long_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        return self._keys.nbytes + self._numbers.nbytes + self._long_bytes

    def find(self, buffer: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """int32 [words]: the number of each word, -1 for one that is not in the table.

        starts, lengths: i64 [words], of the words in `buffer`, in bytes; no length is 0.
        """
        out = np.full(len(starts), -1, np.int32)
        short = lengths <= SHORT
        keys = _keys(buffer, starts[short], lengths[short])
        out[short] = self._numbers_of(keys)
        for place in np.flatnonzero(~short).tolist():
            out[place] = self._long.get(buffer[starts[place] : starts[place] + lengths[place]], -1)
        return out

    def add(self, words: list[bytes], numbers: np.ndarray) -> None:
        """Adds `words`, all different and not in the table, with their numbers (int32 [words], 0 or more)."""
        sizes = np.array([len(word) for word in words], np.int64)
        short = sizes <= SHORT
        keys = _keys(b"".join(words), (np.cumsum(sizes) - sizes)[short], sizes[short])
        if 2 * (self._held + len(keys)) > len(self._keys):
            self._grow(len(keys))
        self._place(keys, numbers[short])
        self._held += len(keys)
        for place in np.flatnonzero(~short).tolist():
            self._long[words[place]] = int(numbers[place])
            self._long_bytes += LONG_ENTRY + len(words[place])

    def _numbers_of(self, keys: np.ndarray) -> np.ndarray:
        slots, out, waiting = self._slots(keys), np.full(len(keys), -1, np.int32), np.arange(len(keys))
        while len(waiting):
            there = self._keys.take(slots, axis=0)  # faster than indexing (measured)
            same = (there[:, 0] == keys[:, 0]) & (there[:, 1] == keys[:, 1])
            out[waiting[same]] = self._numbers[slots[same]]
            on = np.flatnonzero(~same & (there[:, 1] != 0))
            waiting, keys, slots = waiting[on], keys[on], (slots[on] + 1) & (len(self._keys) - 1)
        return out

    def _place(self, keys: np.ndarray, numbers: np.ndarray) -> None:
        slots = self._slots(keys)
        while len(keys):
            free = np.flatnonzero(self._keys[slots, 1] == 0)
            self._numbers[slots[free]] = free  # of the new keys that hash to one slot, the last one written gets it
            placed = free[self._numbers[slots[free]] == free]
            self._keys[slots[placed]], self._numbers[slots[placed]] = keys[placed], numbers[placed]
            left = np.ones(len(keys), bool)
            left[placed] = False
            keys, numbers, slots = keys[left], numbers[left], (slots[left] + 1) & (len(self._keys) - 1)

    def _grow(self, more: int) -> None:
        taken = self._keys[:, 1] != 0
        keys, numbers = self._keys[taken], self._numbers[taken]
        while 2 * (len(keys) + more) > 1 << self._bits:
            self._bits += 1
        self._keys, self._numbers = np.zeros((1 << self._bits, 2), np.uint64), np.zeros(1 << self._bits, np.int32)
        self._place(keys, numbers)

    def _slots(self, keys: np.ndarray) -> np.ndarray:
        mixed = keys[:, 0] * MIX[0] ^ keys[:, 1] * MIX[1]
        mixed ^= mixed >> np.uint64(32)
        return (mixed * MIX[0] >> np.uint64(64 - self._bits)).astype(np.int64)


def _keys(buffer: bytes, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """uint64 [words, 2]: the bytes of each word (at most SHORT), zeros, and its length in the last byte, so equal keys are equal words."""
    held = np.frombuffer(buffer + bytes(16), np.uint8)
    parts = np.ndarray((len(held) - 7,), "<u8", held, strides=(1,))  # the eight bytes that start at each offset
    out = np.empty((len(starts), 2), np.uint64)
    for part in (0, 1):
        out[:, part] = parts[starts + 8 * part] & KEPT[np.clip(lengths - 8 * part, 0, 8)]
    out[:, 1] |= lengths.astype(np.uint64) << np.uint64(56)
    return out
