"""The n-best list and the null score against the published rule as loops, and by hand."""

import dataclasses
import functools
import math

import numpy as np
import pytest

from jaxenc.tasks import squad_answers
from jaxenc.tasks.squad_answers import Answers, decode, decode_with_null, from_beam, from_logits
from jaxenc.tasks.squad_windows import Window, WindowShape, windows
from tests.tasks import reference_squad
from tests.tasks.test_squad_windows import drawn, pieces, tokenizer

SIZE, LONGEST = 5, 6


def places(context: str) -> list[tuple[int, int]]:
    """The characters of each piece, one after the other in the text."""
    made, at = [], 0
    for word in reference_squad.words_of(context)[0]:
        for piece in pieces(word):
            letters = piece.removeprefix("##")
            at = context.index(letters, at)
            made.append((at, at + len(letters)))
            at += len(letters)
    return made


def text_between(context: str, at: list[tuple[int, int]], before: int, row: dict, a: int, b: int) -> str:
    """The text from place a to place b of a row whose context begins at the place `before`."""
    return context[at[row["first"] + a - before][0] : at[row["first"] + b - before][1]]


@pytest.mark.parametrize("has_null", [False, True])
def test_the_list_is_that_of_the_published_rule(has_null: bool) -> None:
    """Texts, order and scores of 60 random questions with up to 9 windows; half of the logits are small integers, so many are equal."""
    random = np.random.default_rng(1)
    shape, several = WindowShape(24, 5, 6, specials=3), 0
    for turn in range(60):
        context, _ = drawn(random)
        (asked, _), (_, offsets) = tokenizer().encode_offsets(["the end", context])
        made, before = windows(len(asked), offsets, None, shape), len(asked) + 2
        logits = random.normal(0, 3, (len(made), 2, 24)).astype(np.float32)
        logits = np.round(logits) if turn % 2 else logits
        rows = reference_squad.rows("the end", context, None, pieces, 24, 5, 6)
        text_of = functools.partial(text_between, context, places(context), before)
        wanted, null = reference_squad.n_best(rows, np.float64(logits).tolist(), text_of, SIZE, LONGEST, has_null)
        found = [(w, from_logits(w, before, start, end, SIZE, LONGEST)) for w, (start, end) in zip(made, logits, strict=True)]
        nulls = logits[:, :, 0].tolist()
        got = decode_with_null(context, found, nulls, SIZE) if has_null else decode(context, found, SIZE)
        if not wanted:  # no candidate: an entry without text, by a rule of its own
            assert [span.text for span in got.n_best] == [""]
            continue
        assert [(span.text, span.score) for span in got.n_best] == wanted
        assert all(span.text in (context[span.start : span.end], "") for span in got.n_best)
        assert sum(span.probability for span in got.n_best) == pytest.approx(1)
        if any(span.text for span in got.n_best):
            assert got.null_score == pytest.approx(null)
        several += len(made) > 1
    assert several > 30


CONTEXT = "one two three two five"
OFFSETS = [(0, 3), (4, 7), (8, 13), (14, 17), (18, 22)]
ONE = windows(1, OFFSETS, None, WindowShape(16, 5, 4, specials=3))[0]


def logits(**places: float) -> np.ndarray:
    """A row of 16 places: CLS, the question, SEP, the context at 3 to 7, SEP, padding. -9 but where it is given, as c0..c4 or p0..p15."""
    row = np.full(16, -9, np.float32)
    for name, value in places.items():
        row[int(name[1:]) + 3 * (name[0] == "c")] = value
    return row


def found(start: np.ndarray, end: np.ndarray, size: int = 20, longest: int = 30, window: Window = ONE) -> list[tuple[str, float]]:
    got = decode(CONTEXT, [(window, from_logits(window, 3, start, end, size, longest))], size)
    return [(span.text, span.score) for span in got.n_best]


def test_answers_are_cut_from_the_context() -> None:
    assert found(logits(c1=5), logits(c2=4))[0] == ("two three", 9)


def test_no_answer_is_outside_of_the_context_backwards_or_too_long() -> None:
    """The best places are the question, a special token and padding; then an end before the start; then a long answer."""
    assert found(logits(p1=9, p2=9, p15=9, c3=5), logits(p8=9, c1=6, c4=4))[0] == ("two five", 9)
    assert found(logits(c0=5, c2=4), logits(c4=5), longest=3)[0] == ("three two five", 9)
    assert found(logits(c0=5), logits(c4=5), longest=5)[0] == ("one two three two five", 10)


def test_only_the_best_places_of_a_row_count() -> None:
    """Two of each: places outside of the context take theirs. Nothing is left for the second list."""
    assert found(logits(p0=9, c1=5, c0=4), logits(c1=3, c2=2), size=2) == [("two", 8), ("two three", 7)]
    assert found(logits(p0=9, p1=8, c0=4), logits(c1=3), size=2) == [("", -2 * squad_answers.LARGE)]


def test_an_answer_starts_where_its_context_is_widest() -> None:
    narrow = dataclasses.replace(ONE, max_context=(True, False, True, True, True))
    assert found(logits(c1=5, c2=1), logits(c2=4), window=narrow)[0] == ("three", 5)
    ends_there = dataclasses.replace(ONE, max_context=(True, True, False, True, True))
    assert found(logits(c1=5), logits(c2=4), window=ends_there)[0] == ("two three", 9)


def test_equal_texts_are_one_entry() -> None:
    """`two` stands twice; the better one is kept, with its place."""
    got = decode(CONTEXT, [(ONE, from_logits(ONE, 3, logits(c1=3, c3=5), logits(c1=3, c3=5), 20, 1))], 20)
    assert [span.text for span in got.n_best].count("two") == 1 and (got.n_best[0].text, got.n_best[0].start) == ("two", 14)


def null_of(start: np.ndarray, end: np.ndarray, size: int = 20) -> Answers:
    return decode_with_null(CONTEXT, [(ONE, from_logits(ONE, 3, start, end, size, 30))], [(float(start[0]), float(end[0]))], size)


def test_no_answer_is_given_above_the_threshold_only() -> None:
    got = null_of(logits(p0=3, c0=2), logits(p0=3, c0=2))
    assert (got.null_score, got.text, got.chosen(1.9), got.chosen(2.0)) == (2.0, "one", "", "one")
    assert got.n_best[0].text == "" and got.n_best[1].text == "one"


def test_no_answer_comes_after_an_equal_score() -> None:
    got = null_of(logits(p0=2, c0=2), logits(p0=2, c0=2))
    assert [span.text for span in got.n_best[:2]] == ["one", ""] and got.null_score == 0


def test_no_answer_is_an_entry_after_a_full_list() -> None:
    got = null_of(logits(p0=-20, c0=5, c1=4), logits(p0=-20, c1=5, c2=4), size=2)
    assert [span.text for span in got.n_best] == ["one two", "one two three", ""]


def test_the_window_with_the_lowest_null_score_counts() -> None:
    """A window that does not hold the answer is sure that there is none; the one that holds it is not."""
    one = from_logits(ONE, 3, logits(c0=2), logits(c0=2), 20, 30)
    got = decode_with_null(CONTEXT, [(ONE, one), (ONE, one)], [(9.0, 9.0), (1.0, 0.5)], 20)
    assert got.null_score == 1.5 - 4 and next(span.score for span in got.n_best if not span.text) == 1.5
    assert decode(CONTEXT, [(ONE, one), (ONE, one)], 20, null=[3.0, -1.0]).null_score == -1.0


def test_a_question_without_candidates_has_no_answer() -> None:
    empty = windows(1, [], None, WindowShape(16, 5, 4, specials=3))[0]
    none = from_logits(empty, 3, logits(c0=5), logits(c0=5), 20, 30)
    assert decode("", [(empty, none)], 20) == Answers((squad_answers.Span("", 0, 0, -1e6, -1e6, 1.0),), 0.0)
    got = decode_with_null("", [(empty, none)], [(1.0, 1.0)], 20)
    assert [span.text for span in got.n_best] == [""] and got.chosen(1e5) == "" and math.isfinite(got.null_score)


def test_one_token_is_an_answer() -> None:
    (one,) = windows(1, [(0, 3)], None, WindowShape(16, 5, 4, specials=3))
    got = decode("one", [(one, from_logits(one, 3, logits(c0=1), logits(c0=1), 20, 30))], 20)
    assert [(span.text, span.start, span.end, span.probability) for span in got.n_best] == [("one", 0, 3, 1.0)]


def test_white_space_of_a_piece_is_not_part_of_the_answer() -> None:
    """Byte-level BPE's pieces begin with the blank before the word."""
    window = dataclasses.replace(ONE, offsets=((0, 3), (3, 7), (7, 13), (13, 17), (17, 22)))
    got = decode(CONTEXT, [(window, from_logits(window, 3, logits(c1=5), logits(c1=5), 20, 30))], 20)
    assert (got.text, got.n_best[0].start, got.n_best[0].end) == ("two", 4, 7)


def test_a_beam_pairs_every_start_with_its_own_ends() -> None:
    """Place 0 is CLS; the second start's best end is before it; the null score is a logit of its own and never hides the best answer."""
    start, end = np.array([3, 5]), np.array([[4, 0, 3], [4, 7, 5]])
    found = from_beam(ONE, 3, start, end, np.array([-0.5, -1.0]), np.array([[-0.1, -0.2, -3.0], [-0.1, -0.3, -2.0]]), 30)
    got = decode(CONTEXT, [(ONE, found)], 20, null=[7.5])
    wanted = [("one two", -0.6), ("three two five", -1.3), ("three", -3.0), ("one", -3.5)]
    assert [(span.text, pytest.approx(span.score)) for span in got.n_best] == wanted
    assert (got.null_score, got.text, got.chosen(-2.75), got.chosen(7.5)) == (7.5, "one two", "", "one two")
