"""The rows of questions: a window of the context beside the question, and the labels of the heads that find answers."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxenc.data.scripts import is_unspaced
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.squad_files import Question
from jaxenc.tasks.squad_windows import Offsets, Window, WindowShape, covering_span, matched_span, windows
from jaxenc.tasks.task import Features

HEADS = SPANS, JOINT, BEAM = "spans", "joint_spans", "beam_spans"
UNKNOWN = -1  # a label that the heads ignore


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """Where things are in a row. window: the part of the context that it holds. first: the place of the first token of that. none: that of
    CLS, which stands for `no answer`. used: tokens of the row, without padding."""

    window: Window
    first: int
    none: int
    used: int


def features(examples: Sequence[Question], framing: Framing, shape: WindowShape, head: str) -> Features:
    """The rows of questions, one for each window of the context.

    Families with `ModelConfig.context_first` read the context before the question; CLS is then the last token (zihangdai/xlnet
    run_squad.py), otherwise the first. `start`, `end`: i32 [rows], the first and the last token of the answer as places in the row; both
    are the place of CLS where the question has no answer or the window does not hold all of it, and UNKNOWN where the answer is not known
    or gives no token. The heads that search also read:
    `answerable`: i32 [rows], 1 = there is an answer: of `joint_spans` to the question, even if it is in another window
        (google-research/electra finetune/qa/qa_tasks.py), of `beam_spans` in the window (zihangdai/xlnet run_squad.py).
    `context`: i32 [rows, length], 1 where an answer may begin or end: the context, and of `joint_spans` the SEP after it too, as published.

    places: a `Place` a row. shortened: how many questions are longer than `shape.max_query`.
    """
    last = framing.model.context_first
    asked = framing.ids([example.question for example in examples])
    contexts = list(dict.fromkeys(example.context for example in examples))
    pieces = dict(zip(contexts, framing.offsets(contexts), strict=True))
    owner, made, pairs, known = [], [], [], []
    for number, (example, question) in enumerate(zip(examples, asked, strict=True)):
        ids, offsets = pieces[example.context]
        answer = answer_span(example, ids, offsets, framing)
        for window in windows(len(question), offsets, answer, shape):
            own = question[: shape.max_query], ids[window.first : window.end]
            pairs.append(own[::-1] if last else own)
            owner.append(number)
            made.append(window)
            known.append(example.impossible or answer is not None)
    framed = framing.rows(pairs, [examples[number].where for number in owner])
    ends, firsts = framed.rows["segments"].sum(axis=1).tolist(), framed.starts[:, 0 if last else 1].tolist()
    places = [Place(window, first, end - 1 if last else 0, end) for window, first, end in zip(made, firsts, ends, strict=True)]
    rows = framed.rows | {name: _labels(places, known, number) for number, name in enumerate(("start", "end"))}
    if head != SPANS:
        there = [not examples[number].impossible if head == JOINT else bool(one.answer) for number, one in zip(owner, made, strict=True)]
        rows |= {"answerable": np.where(known, there, UNKNOWN).astype(np.int32), "context": _context(places, framing.length, head == JOINT)}
    return Features(rows, np.array(owner, np.int32), places, sum(len(question) > shape.max_query for question in asked))


def _labels(places: Sequence[Place], known: Sequence[bool], end: int) -> np.ndarray:
    """The labels of the starts (`end` 0) or of the ends (1) of answers, i32 [rows]."""
    of_row = [one.first + one.window.answer[end] if one.window.answer else one.none for one in places]
    return np.where(known, of_row, UNKNOWN).astype(np.int32)


def _context(places: Sequence[Place], length: int, more: bool) -> np.ndarray:
    """i32 [rows, length], 1 on the tokens of the context, and with `more` on the one after them."""
    first = np.array([one.first for one in places])[:, None]
    end = first + np.array([len(one.window.offsets) for one in places])[:, None] + more
    return ((np.arange(length) >= first) & (np.arange(length) < end)).astype(np.int32)


def answer_span(question: Question, ids: Sequence[int], offsets: Offsets, framing: Framing) -> tuple[int, int] | None:
    """The first and the last token of the answer to train on, None where there is none or it gives no token. See squad_windows.py.

    The published rule (google-research/bert run_squad.py) matches within the words that the answer touches. Where a script has no blanks
    between words, these are whole sentences: there, as with other vocabularies, the tokens are those that hold a character of the answer.
    """
    answer = question.target
    if answer is None:
        return None
    if framing.tokenizer.cuts_words_alone and not is_unspaced([question.context]):
        return matched_span(question.context, ids, offsets, answer, framing.ids([answer[0]])[0])
    return covering_span(offsets, answer)
