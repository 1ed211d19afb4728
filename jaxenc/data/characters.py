"""Words as a character CNN reads them (Peters et al. 2018): the bytes of each in a frame of fixed width."""

from collections.abc import Sequence

import numpy as np

NAME = "characters.npy"  # of a data folder: the table of its words, uint16 [words, WIDTH]
WIDTH = 50  # ids of a word
BOS, EOS, BOW, EOW, PAD = 256, 257, 258, 259, 260  # after the 256 bytes
SIZE = 261  # ids there are


def of_words(words: Sequence[str]) -> np.ndarray:
    """uint16 [words, WIDTH]: BOW, at most WIDTH - 2 bytes of the word in UTF-8, EOW, PAD to the end.

    A longer word is cut after any byte, also within a character. '' is BOW, EOW. A lone surrogate, which UTF-8 has no bytes for, is left
    out. Source: UnicodeCharsVocabulary in bilm/data.py of allenai/bilm-tf.
    """
    room = WIDTH - 2
    cut = [word.encode("utf-8", "ignore")[:room] for word in words]
    used = np.array([len(word) for word in cut], np.int64)[:, None]
    out = np.full((len(cut), WIDTH), PAD, np.uint16)
    out[:, 0] = BOW
    held = np.frombuffer(b"".join(word.ljust(room, b"\0") for word in cut), np.uint8).reshape(-1, room)
    np.copyto(out[:, 1:-1], held, where=np.arange(room) < used)
    np.put_along_axis(out, used + 1, np.uint16(EOW), axis=1)
    return out


def of_vocabulary(words: Sequence[str], first: int, last: int) -> np.ndarray:
    """`of_words` of the words of a vocabulary by id; the ids `first` and `last` have the rows of <S> and </S>."""
    out = of_words(words)
    out[first], out[last] = begin(), end()
    return out


def begin() -> np.ndarray:
    """uint16 [WIDTH]: the row of <S>: BOW, BOS, EOW, PAD to the end."""
    return _marker(BOS)


def end() -> np.ndarray:
    """uint16 [WIDTH]: the row of </S>: BOW, EOS, EOW, PAD to the end."""
    return _marker(EOS)


def _marker(which: int) -> np.ndarray:
    return np.array([BOW, which, EOW] + [PAD] * (WIDTH - 3), np.uint16)
