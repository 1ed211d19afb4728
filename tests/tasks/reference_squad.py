"""The published rule for questions as plain loops over words and pieces (google-research/bert run_squad.py), without character offsets of
tokens; and SQuAD 2.0's scoring as plain loops."""

import re
import string
from collections.abc import Callable, Sequence

Tokenize = Callable[[str], list[str]]


def words_of(context: str) -> tuple[list[str], list[int]]:
    """(words, the word of each character)"""
    words: list[str] = []
    number = []
    inside = False
    for letter in context:
        if letter in " \t\r\n" or ord(letter) == 0x202F:
            inside = False
        elif inside:
            words[-1] += letter
        else:
            words.append(letter)
            inside = True
        number.append(len(words) - 1)
    return words, number


def rows(
    question: str, context: str, answer: tuple[str, int] | None, tokenize: Tokenize, length: int, stride: int, most: int
) -> list[dict]:
    """The rows of a question: its pieces, labels, and of each place in the context the word and whether its context is the widest."""
    query = tokenize(question)[:most]
    words, number = words_of(context)
    pieces, of_piece, of_word = [], [], []
    for w, word in enumerate(words):
        of_word.append(len(pieces))
        for piece in tokenize(word):
            pieces.append(piece)
            of_piece.append(w)
    first = last = None
    if answer:
        text, at = answer
        begin, end = number[at], number[at + len(text) - 1]
        first = of_word[begin]
        last = of_word[end + 1] - 1 if end + 1 < len(words) else len(pieces) - 1
        first, last = tightest(pieces, first, last, tokenize(text))
    room = length - len(query) - 3
    spans, at = [], 0
    while at < len(pieces):
        size = min(room, len(pieces) - at)
        spans.append((at, size))
        if at + size == len(pieces):
            break
        at += min(size, stride)
    made = []
    for s, (at, size) in enumerate(spans):
        row = ["[CLS]", *query, "[SEP]", *pieces[at : at + size], "[SEP]"]
        before = len(query) + 2
        inside = first is not None and at <= first and last <= at + size - 1
        labels = (first - at + before, last - at + before) if inside else (0, 0)
        word = {before + i: of_piece[at + i] for i in range(size)}
        widest = {before + i: widest_of(spans, at + i) == s for i in range(size)}
        made.append({"pieces": row, "labels": labels, "word": word, "widest": widest, "first": at})
    return made


def tightest(pieces: Sequence[str], first: int, last: int, wanted: Sequence[str]) -> tuple[int, int]:
    for a in range(first, last + 1):
        for b in range(last, a - 1, -1):
            if " ".join(pieces[a : b + 1]) == " ".join(wanted):
                return a, b
    return first, last


def widest_of(spans: Sequence[tuple[int, int]], place: int) -> int | None:
    best, found = None, None
    for s, (at, size) in enumerate(spans):
        if at <= place <= at + size - 1:
            score = min(place - at, at + size - 1 - place) + 0.01 * size
            if best is None or score > best:
                best, found = score, s
    return found


def n_best(
    made: Sequence[dict],
    logits: Sequence[tuple[Sequence[float], Sequence[float]]],
    text_of: Callable[[dict, int, int], str],
    size: int,
    longest: int,
    has_null: bool,
) -> tuple[list[tuple[str, float]], float]:
    """([(text, score)], null score minus the best other score, 0 without a null)."""
    found, null = [], None
    for row, (starts, ends) in zip(made, logits, strict=True):
        if has_null and (null is None or starts[0] + ends[0] < null):
            null = starts[0] + ends[0]
        for a in sorted(range(len(starts)), key=lambda i: -starts[i])[:size]:
            for b in sorted(range(len(ends)), key=lambda i: -ends[i])[:size]:
                if a in row["word"] and b in row["word"] and row["widest"][a] and a <= b and b - a + 1 <= longest:
                    found.append((starts[a] + ends[b], row, a, b))
    if has_null:
        found.append((null, None, 0, 0))
    entries: list[tuple[str, float]] = []
    for score, row, a, b in sorted(found, key=lambda one: -one[0]):
        if len(entries) >= size:
            break
        text = text_of(row, a, b) if row else ""
        if text not in [known for known, _ in entries]:
            entries.append((text, score))
    if has_null and "" not in [text for text, _ in entries]:
        entries.append(("", null))
    best = next((score for text, score in entries if text), None)
    return entries, null - best if has_null and best is not None else 0.0


def plain(text: str) -> list[str]:
    """The words of an answer as SQuAD compares them."""
    kept = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return [word for word in re.sub(r"\b(a|an|the)\b", " ", kept).split() if word]


def exact_and_f1(golds: Sequence[str], answer: str) -> tuple[float, float]:
    golds = [gold for gold in golds if plain(gold)] or [""]
    best_exact, best_f1 = 0.0, 0.0
    for gold in golds:
        wanted, found = plain(gold), plain(answer)
        best_exact = max(best_exact, float(wanted == found))
        if not wanted or not found:
            best_f1 = max(best_f1, float(wanted == found))
            continue
        left, shared = list(wanted), 0
        for word in found:
            if word in left:
                left.remove(word)
                shared += 1
        if shared:
            precision, recall = shared / len(found), shared / len(wanted)
            best_f1 = max(best_f1, 2 * precision * recall / (precision + recall))
    return best_exact, best_f1


def best_threshold(
    order: Sequence[str], golds: dict[str, Sequence[str]], answers: dict[str, str], scores: dict[str, float], null: dict[str, float]
) -> tuple[float, float]:
    """(best score in percent, threshold): every cut of the questions, by rising null score, from `none is answered` on."""
    ranked = sorted(order, key=lambda name: null[name])
    best, threshold = None, 0.0
    for cut in range(len(ranked) + 1):
        total = 0.0
        for rank, name in enumerate(ranked):
            if golds[name]:
                total += scores[name] if rank < cut else 0.0
            else:
                total += float(not answers[name]) if rank < cut else 1.0
        if best is None or total > best + 1e-9:
            best, threshold = total, null[ranked[cut - 1]] if cut else 0.0
    return 100 * best / len(ranked), threshold
