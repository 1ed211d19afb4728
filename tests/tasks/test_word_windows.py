"""Windows of words, beside an independent reading of the rules: every word in a window, scored in the one with most context."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxenc.tasks.word_windows import scored_in, windows
from tests.tasks.window_rule import by_hand, most_context

SENTENCES = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 30)), max_size=60)


@settings(max_examples=400, deadline=None)
@given(pieces=SENTENCES, room=st.integers(1, 24), stride=st.integers(1, 30))
def test_every_word_is_scored_once_where_it_has_most_context(pieces: list[int], room: int, stride: int) -> None:
    found = windows(pieces, room, stride)
    held = [word for first, end in found for word in range(first, end)]
    assert set(held) == set(range(len(pieces)))
    for (first, end), (next_first, next_end) in itertools.pairwise(found):
        assert first < next_first <= end < next_end
        assert sum(pieces[first:next_first]) <= stride or next_first == first + 1 or windows_reach(pieces, room, next_first - 1) == end
    for first, end in found:
        assert sum(pieces[first:end]) <= room or sum(count > 0 for count in pieces[first:end]) == 1
    scored = scored_in(found, pieces).tolist()
    assert scored == [most_context(found, pieces, word) for word in range(len(pieces))]
    assert [number < 0 for number in scored] == [count == 0 for count in pieces]


def windows_reach(pieces: list[int], room: int, first: int) -> int:
    """Where a window from `first` on ends."""
    return first + windows(pieces[first:], room, 1)[0][1]


@settings(max_examples=300, deadline=None)
@given(pieces=SENTENCES.map(lambda pieces: pieces[:14]), room=st.integers(1, 16), stride=st.integers(1, 20))
def test_the_windows_are_those_of_a_loop_over_words(pieces: list[int], room: int, stride: int) -> None:
    assert windows(pieces, room, stride) == by_hand(pieces, room, stride)


def test_by_hand() -> None:
    assert windows([1] * 10, 4, 2) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert scored_in(windows([1] * 10, 4, 2), [1] * 10).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert windows([1] * 4, 4, 2) == [(0, 4)] and windows([], 4, 2) == [(0, 0)]
    assert windows([1, 9, 1], 4, 2) == [(0, 1), (1, 2), (2, 3)]
    assert windows([2, 2, 2, 2], 4, 99) == [(0, 2), (2, 4)]
