"""Windows and labels against the published rule, which works on words and pieces, and by hand."""

import functools

import numpy as np
import pytest

from jaxenc.data.tokenizers import Tokenizer, bpe, wordpiece
from jaxenc.errors import UserError
from jaxenc.tasks.squad_windows import WindowShape, covering_span, matched_span, windows
from tests.tasks import reference_squad

WORDS = "the (1895-1943). Japanese Tokyo, played? and run-running 17,000 a's end".split()
# What separates words for run_squad.py, and what does not: a no-break space and a thin space.
GAPS = [" ", "  ", "\r\n", "\t", "\u202f", " \u202f ", "\u00a0", "\u2009"]


@functools.cache
def tokenizer() -> Tokenizer:
    """WordPiece of single letters and some longer pieces."""
    return wordpiece.train([" ".join(WORDS)] * 4, 70)


def pieces(text: str) -> list[str]:
    return [tokenizer().token(index) for index in tokenizer().encode([text])[0]]


def drawn(random: np.random.Generator) -> tuple[str, tuple[str, int]]:
    """A context of up to 40 words, and an answer in it, which may begin and end inside of words or with white space."""
    context = "".join(random.choice(WORDS) + random.choice(GAPS) for _ in range(random.integers(1, 40)))
    context = random.choice(["", " ", "\n"]) + context
    start = int(random.integers(0, len(context)))
    if reference_squad.words_of(context)[1][start] < 0:  # before the first word
        start += 2
    return context, (context[start : start + int(random.integers(1, 20))], start)


@pytest.mark.parametrize("length, stride, most", [(24, 4, 6), (24, 100, 6), (15, 1, 11), (400, 128, 64)])
def test_rows_are_those_of_the_published_rule(length: int, stride: int, most: int) -> None:
    """Tokens, labels, words and widest contexts of 60 random questions, in up to 200 windows each."""
    random = np.random.default_rng(length)
    shape = WindowShape(length, stride, most, specials=3)
    for _ in range(60):
        context, answer = drawn(random)
        question = " ".join(random.choice(WORDS, random.integers(0, 5)))
        wanted = reference_squad.rows(question, context, answer, pieces, length, stride, most)
        (asked, _), (ids, offsets), (answer_ids, _) = tokenizer().encode_offsets([question, context, answer[0]])
        made = windows(len(asked), offsets, matched_span(context, ids, offsets, answer, answer_ids), shape)
        before = min(len(asked), most) + 2
        number = reference_squad.words_of(context)[1]
        assert len(made) == len(wanted)
        for window, row in zip(made, wanted, strict=True):
            own = [tokenizer().token(index) for index in ids[window.first : window.end]]
            assert own == row["pieces"][before:-1] and len(row["pieces"]) <= length
            assert tuple(before + at for at in window.answer or (-before, -before)) == row["labels"]
            assert {before + i: number[begin] for i, (begin, _) in enumerate(window.offsets)} == row["word"]
            assert {before + i: widest for i, widest in enumerate(window.max_context)} == row["widest"]


def spans(context: str, text: str, tool: Tokenizer | None = None) -> tuple[str, str]:
    """The text of the tokens that are labelled: by match and by cover."""
    tool, start = tool or tokenizer(), context.index(text)
    (ids, offsets), (answer_ids, _) = tool.encode_offsets([context, text])
    found = matched_span(context, ids, offsets, (text, start), answer_ids), covering_span(offsets, (text, start))
    return tuple(context[offsets[first][0] : offsets[last][1]] for first, last in found)


def test_the_answer_inside_of_a_word_is_found() -> None:
    """run_squad.py's own examples: 1895 alone; all of Japanese where the vocabulary does not cut it after Japan."""
    assert spans("The leader was John Smith (1895-1943).", "1895") == ("1895", "1895")
    whole = wordpiece.train(["Japanese"] * 9, 40)
    assert len(whole.encode(["Japanese"])[0]) == 1
    assert spans("The Japanese industry", "Japan", whole) == ("Japanese", "Japanese")


def test_in_byte_level_bpe_the_cover_is_tight_where_no_match_is_found() -> None:
    """A word alone has no blank before it, so its pieces are others, and the match falls back on whole words."""
    tool = bpe.train(["He was born in 1895, 🙂 there"] * 4, 300)
    matched, covered = spans("born in 1895, there", "1895", tool)
    assert matched.strip() == "1895," and covered.strip() == "1895"
    assert spans("an 🙂🙂 here", "🙂 here", tool)[1].strip() == "🙂 here"


def test_an_answer_in_two_windows_is_labelled_in_both_and_cut_in_none() -> None:
    """Ten tokens in windows of six, stride 2: the answer 4..5 is whole in the first three, 5..6 in the last two."""
    offsets = [(i, i + 1) for i in range(10)]
    made = windows(1, offsets, (4, 5), WindowShape(10, 2, 5, specials=3))
    assert [(w.first, w.end, w.answer) for w in made] == [(0, 6, (4, 5)), (2, 8, (2, 3)), (4, 10, (0, 1))]
    assert [w.answer for w in windows(1, offsets, (5, 6), WindowShape(10, 2, 5, specials=3))] == [None, (3, 4), (1, 2)]
    widest = np.zeros(10, int)
    for w in made:
        widest[w.first : w.end] += w.max_context
    assert widest.tolist() == [1] * 10


def test_a_longer_window_wins_by_a_hundredth_a_token() -> None:
    """Windows of 300 and 120 tokens: token 290 has 9 tokens after it in the first and 10 before it in the second."""
    made = windows(1, [(i, i + 1) for i in range(400)], None, WindowShape(304, 280, 5, specials=3))
    assert [(w.first, w.end) for w in made] == [(0, 300), (280, 400)]
    assert [i for i in range(280, 300) if made[0].max_context[i]] == list(range(280, 291))
    assert [280 + i for i in range(20) if not made[1].max_context[i]] == list(range(280, 291))


def test_a_long_question_is_cut() -> None:
    """To max_query tokens, which leaves room for the context, whatever its length."""
    shape = WindowShape(20, 5, 7, specials=3)
    assert shape.room(10**6) == shape.room(7) == 10 and shape.room(2) == 15
    assert [w.end - w.first for w in windows(500, [(0, 1)] * 12, None, shape)] == [10, 7]


def test_short_contexts_have_one_window() -> None:
    shape = WindowShape(20, 5, 7, specials=3)
    (one,) = windows(3, [(0, 4)], (0, 0), shape)
    assert (one.first, one.end, one.max_context, one.answer) == (0, 1, (True,), (0, 0))
    (empty,) = windows(3, [], None, shape)
    assert (empty.first, empty.end, empty.offsets, empty.max_context, empty.answer) == (0, 0, (), (), None)


def test_an_answer_without_a_token_has_no_span() -> None:
    """A control character is a word for run_squad.py and no piece for WordPiece."""
    context = "a \x07 b"
    ((ids, offsets),) = tokenizer().encode_offsets([context])
    assert len(ids) == 2 and matched_span(context, ids, offsets, ("\x07", 2), []) is None
    assert covering_span(offsets, ("\x07", 2)) is None


@pytest.mark.parametrize(
    "length, stride, most, what, fixed",
    [
        (20, 0, 5, "the stride of windows is 0", (20, 1, 5)),
        (20, 5, 0, "max_query is 0", (20, 5, 1)),
        (20, 5, 17, "lower task.max_query to 16 or less", (20, 5, 16)),
        (4, 5, 17, "set train.length to 5 or more", (5, 5, 1)),
    ],
)
def test_settings_that_leave_no_room_are_refused(length: int, stride: int, most: int, what: str, fixed: tuple[int, int, int]) -> None:
    with pytest.raises(UserError, match=what):
        WindowShape(length, stride, most, specials=3)
    assert WindowShape(*fixed, specials=3).room(most) >= 1
