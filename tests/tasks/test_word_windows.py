"""Windows of words, beside an independent reading of the rules: every word in a window, scored in the one with most context."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxenc.tasks.word_windows import scored_in, windows

SENTENCES = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 30)), max_size=60)


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


@settings(max_examples=400, deadline=None)
@given(pieces=SENTENCES, room=st.integers(1, 24), stride=st.integers(1, 30))
def test_every_word_is_scored_once_where_it_has_most_context(pieces: list[int], room: int, stride: int) -> None:
    found = windows(pieces, room, stride)
    held = [word for first, end in found for word in range(first, end)]
    assert set(held) == set(range(len(pieces)))
    for (first, end), (next_first, next_end) in zip(found, found[1:], strict=False):
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
