"""Windows over the context of a question: the rule of google-research/bert run_squad.py, convert_examples_to_features.

A window is a stretch of the tokens of the context that fits into a row beside the question. Windows overlap, so a token may be in several;
its answer counts only in the one where it has the most context.
"""

import bisect
import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxenc.errors import UserError

Offsets = Sequence[tuple[int, int]]
# What run_squad.py splits words at: not the no-break space or the thin space.
WHITE = frozenset(" \t\r\n\u202f")


@dataclasses.dataclass(frozen=True)
class WindowShape:
    """How the row of a question is divided. Raises UserError where no row could hold a token of the context.

    length: of a row, in tokens. stride: from the first token of a window to that of the next; at most the length of a window is used.
    max_query: the question is cut to so many tokens. specials: tokens of a row besides the question and the context, 3 for most families.
    """

    length: int
    stride: int
    max_query: int
    specials: int

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise UserError(f"the stride of windows is {self.stride}", fix="use 1 or more")
        if self.max_query < 1:
            raise UserError(f"max_query is {self.max_query}", fix="use 1 or more")
        if self.room(self.max_query) < 1:
            parts = f"a question of {self.max_query} tokens (max_query) and {self.specials} special ones"
            most = self.length - self.specials - 1
            longer = f"set train.length to {self.specials + 2} or more"
            fix = f"lower task.max_query to {most} or less, or raise train.length" if most > 0 else longer
            raise UserError(f"rows of {self.length} tokens have no place for a context beside {parts}", fix=fix)

    def room(self, question: int) -> int:
        """The most tokens of a context in a row with a question of `question` tokens, which is cut to `max_query`."""
        return self.length - min(question, self.max_query) - self.specials


@dataclasses.dataclass(frozen=True)
class Window:
    """The tokens `first` to `end` (exclusive) of a context.

    offsets: of each of them, (first character in the context, end). max_context: of each, whether this window is where it has the most
    context. answer: the first and the last token of the answer, both counted from `first`; None where the window does not hold all of it,
    or there is none: both labels are then the place of CLS.
    """

    first: int
    end: int
    offsets: tuple[tuple[int, int], ...]
    max_context: tuple[bool, ...]
    answer: tuple[int, int] | None


def windows(question: int, offsets: Offsets, answer: tuple[int, int] | None, shape: WindowShape) -> tuple[Window, ...]:
    """The windows of one question, at least one: an empty context has one window without tokens, so that every question has a row.

    question: the number of its tokens, before the cut. offsets: of each token of the context. answer: its first and last token, from
    `matched_span` or `covering_span`.
    """
    count, room = len(offsets), shape.room(question)
    firsts = [0]
    while firsts[-1] + room < count:
        firsts.append(firsts[-1] + min(room, shape.stride))
    ends = [min(first + room, count) for first in firsts]
    owner = _max_context(firsts, ends)
    made = []
    for number, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        held = answer is not None and first <= answer[0] and answer[1] < end
        inside = (answer[0] - first, answer[1] - first) if held else None
        made.append(Window(first, end, tuple(offsets[first:end]), tuple((owner[first:end] == number).tolist()), inside))
    return tuple(made)


def _max_context(firsts: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    """Of each token the number of its window: the first one with the largest min(tokens to the left, to the right) + 0.01 · length."""
    best, owner = np.full(ends[-1], -1.0), np.full(ends[-1], -1)
    for number, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        left = np.arange(end - first)
        score = np.minimum(left, left[::-1]) + 0.01 * (end - first)
        better = score > best[first:end]
        best[first:end] = np.where(better, score, best[first:end])
        owner[first:end] = np.where(better, number, owner[first:end])
    return owner


def matched_span(
    context: str, ids: Sequence[int], offsets: Offsets, answer: tuple[str, int], answer_ids: Sequence[int]
) -> tuple[int, int] | None:
    """The first and the last token of an answer, as BERT and ELECTRA are trained (google-research/bert run_squad.py,
    _improve_answer_span).

    Among the tokens of the words that the answer touches, the first ones that are `answer_ids`, the ids of the answer's text alone. Where
    there are none, all tokens of these words: `Japanese` for `Japan`. Words are separated by WHITE. None where the words give no tokens.
    answer: (text, first character in the context).

    run_squad.py also leaves out answers with white space that only Python's `str.split` separates, such as a no-break space; here they are
    used, since the context does hold them.
    """
    words = _words(context)
    text, start = answer
    of_tokens = [words[max(end, 1) - 1] for _, end in offsets]
    first = bisect.bisect_left(of_tokens, max(words[start], 0))
    last = bisect.bisect_right(of_tokens, words[start + len(text) - 1]) - 1
    if last < first:
        return None
    count, wanted = len(answer_ids), list(answer_ids)
    for begin in range(first, last + 2 - count if count else first):
        if list(ids[begin : begin + count]) == wanted:
            return begin, begin + count - 1
    return first, last


def covering_span(offsets: Offsets, answer: tuple[str, int]) -> tuple[int, int] | None:
    """The first and the last token that hold a character of the answer, as XLNet is trained (zihangdai/xlnet run_squad.py).

    For vocabularies whose pieces depend on what precedes them, such as byte-level BPE and unigram. None where no token holds one.

    answer: (text, first character in the context).
    """
    text, start = answer
    stop = start + len(text)
    held = [number for number, (begin, end) in enumerate(offsets) if begin < stop and end > start]
    return (held[0], held[-1]) if held else None


def _words(text: str) -> list[int]:
    """Of each character the number of its word; of white space that of the word before it, -1 for none."""
    numbers, word, blank = [], -1, True
    for letter in text:
        white = letter in WHITE
        word += blank and not white
        blank = white
        numbers.append(word)
    return numbers
