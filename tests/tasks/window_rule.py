"""The rules of windows over words, word by word, for comparison."""

from collections.abc import Callable

from hypothesis import settings

from tests.selection import FULL


def random_inputs(count: int) -> Callable:
    """Makes a test one of `count` inputs: always the same in the short suite, new ones every time in the full one."""
    return settings(max_examples=count, derandomize=not FULL, print_blob=FULL, database=None, deadline=None)


def by_hand(pieces: list[int], room: int, stride: int) -> list[tuple[int, int]]:
    """The windows, word by word."""
    fits = lambda first, end: sum(pieces[first:end]) <= room or end == first + 1
    end_of = lambda first: max(end for end in range(first + 1, len(pieces) + 1) if fits(first, end))
    found = [(0, end_of(0) if pieces else 0)]
    while found[-1][1] < len(pieces):
        first, end = found[-1]
        starts = [word for word in range(first + 1, end + 1) if end_of(word) > end]
        near = [word for word in starts if sum(pieces[first:word]) <= stride]
        word = near[-1] if near else starts[0]
        found.append((word, end_of(word)))
    return found


def most_context(found: list[tuple[int, int]], pieces: list[int], word: int) -> int:
    """The number of the window by the loop of run_squad.py, over the pieces of the whole sentence."""
    position = sum(pieces[:word])
    best, chosen = -1.0, -1
    for number, (first, end) in enumerate(found):
        begin, length = sum(pieces[:first]), sum(pieces[first:end])
        if first <= word < end and pieces[word]:
            score = min(position - begin, begin + length - 1 - position) + 0.01 * length
            best, chosen = (score, number) if score > best else (best, chosen)
    return chosen
