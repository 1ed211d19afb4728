"""Sentences that are longer than a row, cut into windows at the boundaries of words; each word is scored in one of them."""

from collections.abc import Sequence

import numpy as np

Window = tuple[int, int]


def windows(pieces: Sequence[int], room: int, stride: int) -> list[Window]:
    """(first word, end) of the windows of a sentence, in order; together they hold every word, and each adds at least one word. A sentence
    without words has one empty window.

    pieces: how many pieces each word has. room: how many a window holds, 1 or more. stride: the most pieces from the start of a window to
    the start of the next, unless a word has more; windows overlap by the other pieces. A word with more pieces than `room` has a window of
    its own, as if it had `room` pieces.
    """
    starts = first_pieces(pieces)
    count = len(pieces)
    ends = [max(int(np.searchsorted(starts, starts[word] + room, "right")) - 1, word + 1) for word in range(count)]
    first, end = 0, ends[0] if count else 0
    found = [(first, end)]
    while end < count:
        within = int(np.searchsorted(starts, starts[first] + stride, "right")) - 1
        first = min(max(within, first + 1), end)
        while ends[first] == end:  # such a window would add no word
            first += 1
        end = ends[first]
        found.append((first, end))
    return found


def scored_in(found: Sequence[Window], pieces: Sequence[int]) -> np.ndarray:
    """i32 [words], the number of the window that each word is scored in: the one with the most context, the earliest of equals; -1 for a
    word without pieces.

    The context of a word is the smaller of the numbers of pieces before and after its first piece in the window, plus 0.01 · the pieces of
    the window (google-research/bert run_squad.py, _check_is_max_context).
    """
    starts = first_pieces(pieces)
    best, chosen = np.full(len(pieces), -1, np.int64), np.full(len(pieces), -1, np.int32)
    for number, (first, end) in enumerate(found):
        at = starts[first:end]
        before, after = at - starts[first], starts[end] - 1 - at
        context = 100 * np.minimum(before, after) + starts[end] - starts[first]
        better = (context > best[first:end]) & (np.diff(starts[first : end + 1]) > 0)
        best[first:end][better], chosen[first:end][better] = context[better], number
    return chosen


def first_pieces(pieces: Sequence[int]) -> np.ndarray:
    """i64 [words + 1]: the number of the first piece of each word in its sentence, and the number of all pieces."""
    return np.concatenate([[0], np.cumsum(pieces, dtype=np.int64)])
