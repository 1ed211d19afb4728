"""Exact match and F1 of answers as SQuAD 2.0's evaluate-v2.0.py defines them (Rajpurkar et al. 2018).

On SQuAD 1.1 they are those of evaluate-v1.1.py, except where an answer is nothing but articles and punctuation.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from jaxenc.tasks.squad_files import Question

ARTICLES = re.compile(r"\b(a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text: str) -> str:
    """Lower case, without ASCII punctuation, then without the words a, an and the, with one blank between words."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(WITHOUT_PUNCTUATION)).split())


def exact(gold: str, answer: str) -> float:
    """1 where both are equal after `normalized`, else 0."""
    return float(normalized(gold) == normalized(answer))


def f1(gold: str, answer: str) -> float:
    """The harmonic mean of precision and recall of the words, counted with repetitions; where either has none, 1 if both have none."""
    wanted, found = normalized(gold).split(), normalized(answer).split()
    if not wanted or not found:
        return float(wanted == found)
    shared = sum((Counter(wanted) & Counter(found)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(found), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def of_each(questions: Iterable[Question], answers: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """{question: (exact, f1)}, the largest over its annotated answers; '' is the only right answer to a question without any.

    answers: {question: text}. Raises ValueError for a question that is not labelled or has no entry in `answers`.
    """
    scores = {}
    for question in questions:
        if not question.labelled or question.name not in answers:
            raise ValueError(f"{question.where}: not labelled or not answered")
        answer = answers[question.name]
        golds = [text for text, _ in question.answers if normalized(text)] or [""]
        scores[question.name] = max(exact(gold, answer) for gold in golds), max(f1(gold, answer) for gold in golds)
    return scores


def score(questions: Sequence[Question], answers: Mapping[str, str]) -> dict[str, float]:
    """{exact, f1, total}, in percent and by the names of evaluate-v2.0.py, over all questions, and with the prefixes HasAns_ and NoAns_
    over those with and without an answer, where there are any. NaN over no questions. Raises as `of_each`."""
    scores = of_each(questions, answers)
    found = _means([scores[question.name] for question in questions])
    for prefix, has in (("HasAns", True), ("NoAns", False)):
        if part := [scores[question.name] for question in questions if bool(question.answers) is has]:
            found |= {f"{prefix}_{name}": value for name, value in _means(part).items()}
    return found


def best_thresholds(questions: Sequence[Question], answers: Mapping[str, str], null: Mapping[str, float]) -> dict[str, float]:
    """{best_exact, best_exact_thresh, best_f1, best_f1_thresh}: the best scores, in percent, that a threshold on the null score reaches on
    these same questions, and the threshold: above it a question is answered by ''.

    answers: the best answer to each question, also to those that the model thinks have none. null: {question: null score} of the same
    questions. As in the official script, questions with equal null scores are counted one by one in the order of `null`: a best score may
    be reached inside such a group, where no threshold can reach it. The scores are NaN over no questions. Raises as `of_each`.
    """
    scores = of_each(questions, answers)
    found = {}
    for number, name in enumerate(("exact", "f1")):
        of_one = {question: pair[number] for question, pair in scores.items()}
        found[f"best_{name}"], found[f"best_{name}_thresh"] = _best(questions, answers, null, of_one)
    return found


def _best(
    questions: Sequence[Question], answers: Mapping[str, str], null: Mapping[str, float], scores: Mapping[str, float]
) -> tuple[float, float]:
    """(best score in percent, threshold). It begins with '' for every question and the threshold 0."""
    current = best = float(sum(not question.answers for question in questions))
    threshold = 0.0
    has_answer = {question.name: bool(question.answers) for question in questions}
    for name in sorted(null, key=lambda name: null[name]):
        # What answering this question adds: its score, or minus the point for '' where there is no answer.
        current += scores[name] if has_answer[name] else -float(bool(answers[name]))
        if current > best:
            best, threshold = current, null[name]
    return _percent(best, len(questions)), threshold


def _means(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    exacts, f1s = (sum(pair[number] for pair in pairs) for number in (0, 1))
    return {"exact": _percent(exacts, len(pairs)), "f1": _percent(f1s, len(pairs)), "total": len(pairs)}


def _percent(total: float, count: int) -> float:
    return 100.0 * total / count if count else float("nan")
