"""Answers from the predictions of span heads: the n-best list and the null score of a question, from all of its windows.

The rule is that of google-research/bert run_squad.py, write_predictions, and of its copies in google-research/electra qa_metrics.py and
zihangdai/xlnet run_squad.py. One thing differs: BERT and ELECTRA join the word pieces of an answer, search that text in its words joined
by single blanks, and give all of these words, with their punctuation, where they do not find it, as for an unknown piece (get_final_text).
Here, as for XLNet, an answer is cut from the original text by the offsets of its tokens: the same text but for a few rare cases.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxenc.tasks.squad_windows import Window

# The null score of a question without any possible answer, and minus the score of its answer '' (run_squad.py: large and positive).
LARGE = 1e6


class Candidates(NamedTuple):
    """Possible answers in one window, [candidates] each: first token and last token within the window, i64, and their scores, f64."""

    first: np.ndarray
    last: np.ndarray
    start_score: np.ndarray
    end_score: np.ndarray


@dataclasses.dataclass(frozen=True)
class Span:
    """One entry of an n-best list. text: '' for no answer. start, end: its characters in the context, end exclusive; 0, 0 for no answer.
    start_score, end_score: logits, or logarithms of probabilities from a beam. probability: over the entries of the list."""

    text: str
    start: int
    end: int
    start_score: float
    end_score: float
    probability: float = 0.0

    @property
    def score(self) -> float:
        """By which the list is ordered."""
        return self.start_score + self.end_score


@dataclasses.dataclass(frozen=True)
class Answers:
    """What the model says of one question.

    n_best: the best entries first, at least one. null_score: the higher, the less the model believes that there is an answer.
    """

    n_best: tuple[Span, ...]
    null_score: float

    @property
    def text(self) -> str:
        """The best answer that is not ''; '' where there is none."""
        return next((span.text for span in self.n_best if span.text), "")

    def chosen(self, threshold: float) -> str:
        """The answer to give where questions may have none: '' for a null score above the threshold."""
        return "" if self.null_score > threshold else self.text


def from_logits(window: Window, place: int, start: np.ndarray, end: np.ndarray, size: int, longest: int) -> Candidates:
    """The candidates of a head with independent ends: the best `size` starts with the best `size` ends, `size`² at most.

    start, end: the logits of a whole row, f32 [length]; the best are chosen among all of its places, question, special tokens and padding
    included, and then those outside of the context are left out. place: that of the window's first token in the row. longest: most tokens
    of an answer. An answer starts where the window has the most context and does not end before it starts.
    """
    starts, ends = (np.argsort(-np.asarray(logits, np.float64), kind="stable")[:size] for logits in (start, end))
    shape = len(starts), len(ends)
    pairs = np.broadcast_to(starts[:, None], shape), np.broadcast_to(ends[None], shape)
    return _possible(window, place, *pairs, np.asarray(start)[pairs[0]], np.asarray(end)[pairs[1]], longest)


def from_beam(
    window: Window, place: int, start: np.ndarray, end: np.ndarray, start_score: np.ndarray, end_score: np.ndarray, longest: int
) -> Candidates:
    """The candidates of a head that searches the ends given each of the best starts (google-research/electra and zihangdai/xlnet).

    start: i32 [starts], places in the row; end: i32 [starts, ends]; start_score: f32 [starts]; end_score: f32 [starts, ends]. The rest is
    as in `from_logits`.
    """
    shape = np.shape(end)
    wide = (np.broadcast_to(np.asarray(given)[:, None], shape) for given in (start, start_score))
    starts, scores = wide
    return _possible(window, place, starts, np.asarray(end), scores, np.asarray(end_score), longest)


def _possible(
    window: Window, place: int, start: np.ndarray, end: np.ndarray, start_score: np.ndarray, end_score: np.ndarray, longest: int
) -> Candidates:
    """Those of the pairs that are an answer, in their order, row by row."""
    count = window.end - window.first
    first, last = start.astype(np.int64) - place, end.astype(np.int64) - place
    inside = (first >= 0) & (first < count) & (last >= first) & (last < count) & (last - first < longest)
    widest = np.array([*window.max_context, False])  # the last entry stands for every place outside
    inside &= widest[np.where((first >= 0) & (first < count), first, count)]
    return Candidates(first[inside], last[inside], start_score[inside].astype(np.float64), end_score[inside].astype(np.float64))


def decode_with_null(context: str, found: Sequence[tuple[Window, Candidates]], null: Sequence[tuple[float, float]], size: int) -> Answers:
    """The answers of a head with independent ends where a question may have none, as in SQuAD 2.0
    (google-research/bert).

    null: of each window the start and the end logit of CLS. The window with the lowest sum stands for `no answer`, which is an entry of
    the list, after the best `size` where it is not among them. The null score is that sum minus the score of the best other entry.
    """
    lowest = min(null, key=sum)
    none = Span("", 0, 0, float(lowest[0]), float(lowest[1]))
    entries = _n_best(context, found, size, none)
    best = next((span.score for span in entries if span.text), -LARGE)
    return Answers(_with_probabilities(entries), none.score - best)


def decode(context: str, found: Sequence[tuple[Window, Candidates]], size: int, null: Sequence[float] = ()) -> Answers:
    """The answers of a head where every question has one (SQuAD 1.1), or of one with a logit for `no answer`
    (google-research/electra and zihangdai/xlnet).

    null: of each window that logit, () without one. The null score is the lowest of them and does not depend on the spans; it is compared
    with a threshold that is searched on held-out questions, and the best answer is given whatever it is. Without a possible answer the list
    has one entry, '' (as in XLNet; the two others write the word `empty`).
    """
    entries = _n_best(context, found, size, None) or [Span("", 0, 0, -LARGE, -LARGE)]
    return Answers(_with_probabilities(entries), float(min(null, default=0.0)))


def _n_best(context: str, found: Sequence[tuple[Window, Candidates]], size: int, none: Span | None) -> list[Span]:
    """The entries in order, each text once, by its best score. Equal scores keep the order of windows and candidates; `none` is last."""
    places = [(window, *pair) for window, one in found for pair in zip(one.first.tolist(), one.last.tolist(), strict=True)]
    scores = np.concatenate([np.stack([one.start_score, one.end_score], axis=1) for _, one in found]).reshape(-1, 2)
    kept: dict[str, Span] = {}
    for number in np.argsort(-scores.sum(axis=1), kind="stable").tolist():
        if none and none.score > scores[number].sum():
            kept.setdefault("", none)
        if len(kept) >= size:
            break
        window, first, last = places[number]
        span = _cut(context, window.offsets[first][0], window.offsets[last][1], *scores[number].tolist())
        if span.text:
            kept.setdefault(span.text, span)
    if none:
        kept.setdefault("", none)
    return list(kept.values())


def _cut(context: str, start: int, end: int, start_score: float, end_score: float) -> Span:
    """The span of these characters without the white space around them, which pieces of some vocabularies hold."""
    text = context[start:end]
    start += len(text) - len(text.lstrip())
    return Span(text.strip(), start, start + len(text.strip()), start_score, end_score)


def _with_probabilities(entries: Sequence[Span]) -> tuple[Span, ...]:
    """The entries with the softmax of their scores."""
    scores = np.array([span.score for span in entries])
    weights = np.exp(scores - scores.max())
    return tuple(dataclasses.replace(span, probability=p) for span, p in zip(entries, (weights / weights.sum()).tolist(), strict=True))
