"""Windows of words, beside an independent reading of the rules: every word in a window, scored in the one with most context."""

import itertools
import random
from collections.abc import Iterator

from jaxenc.tasks.word_windows import scored_in, windows
from tests.tasks.window_rule import by_hand, most_context


def drawn(seed: int, count: int, longest: int) -> Iterator[tuple[list[int], int, int]]:
    """(pieces of each word, room, stride): words of one piece, of a few or none, and longer than a window; strides up to no overlap."""
    draw = random.Random(seed)
    for _ in range(count):
        kinds = draw.choice([[1], [1, 2], [0, 1, 2, 3], [0, 1, 2, 30]])
        room = draw.randint(1, 24)
        yield [draw.choice(kinds) for _ in range(draw.randint(0, longest))], room, draw.randint(1, room + 4)


def test_every_word_is_scored_once_where_it_has_most_context() -> None:
    for pieces, room, stride in drawn(1, 400, 60):
        found = windows(pieces, room, stride)
        assert {word for first, end in found for word in range(first, end)} == set(range(len(pieces)))
        for (first, end), (next_first, next_end) in itertools.pairwise(found):
            assert first < next_first <= end < next_end
        assert all(sum(pieces[first:end]) <= room or end == first + 1 for first, end in found)
        scored = scored_in(found, pieces).tolist()
        assert scored == [most_context(found, pieces, word) for word in range(len(pieces))]
        assert [number < 0 for number in scored] == [count == 0 for count in pieces]


def test_the_windows_are_those_of_a_loop_over_words() -> None:
    for pieces, room, stride in drawn(2, 200, 30):
        assert windows(pieces, room, stride) == by_hand(pieces, room, stride)


def test_by_hand() -> None:
    assert windows([1] * 10, 4, 2) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert scored_in(windows([1] * 10, 4, 2), [1] * 10).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert windows([1] * 4, 4, 2) == [(0, 4)] and windows([], 4, 2) == [(0, 0)]
    assert windows([1, 9, 1], 4, 2) == [(0, 1), (1, 2), (2, 3)]
    assert windows([2, 2, 2, 2], 4, 99) == [(0, 2), (2, 4)]


def test_of_equal_context_the_longer_window_counts_and_then_the_earlier() -> None:
    assert scored_in([(0, 3), (1, 5)], [1, 1, 2, 1, 1]).tolist() == [0, 0, 1, 1, 1]
    assert scored_in([(0, 3), (2, 6)], [1] * 6).tolist() == [0, 0, 1, 1, 1, 1]
    assert scored_in([(0, 3), (2, 5)], [1] * 5).tolist() == [0, 0, 0, 1, 1]
