"""Nearest neighbours of a word: of each occurrence, by its contextual vector, and of the word itself, by its context-free vector.

They show whether a model separates the senses of a word (Peters et al. 2018, section 5.3 and table 4).
"""

import dataclasses
import functools
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jaxenc.errors import UserError
from jaxenc.inference import words
from jaxenc.inference.model import Model
from jaxenc.inference.spans import Spans
from jaxenc.inference.words import Sentence


class Occurrence(NamedTuple):
    """One occurrence of a word: the numbers of its sentence and of the word in it, 0-based."""

    sentence: int
    word: int


class Near(NamedTuple):
    """A neighbour of an occurrence. cosine: of the two vectors, -1 to 1."""

    cosine: float
    place: Occurrence


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """occurrences: their number. static: the nearest other words by layer 0, (cosine, word). senses: some occurrences that differ as much
    as possible, each with its nearest occurrences of any word in other sentences, nearest first."""

    occurrences: int
    static: list[tuple[float, str]]
    senses: list[tuple[Occurrence, list[Near]]]


def report(model: Model, sentences: Sequence[Sentence], word: str, layer: int, count: int, senses: int) -> Neighbours:
    """The neighbours of `word` in `sentences`. layer: of the contextual vectors, 0 to layers; count: neighbours of each; senses: number of
    occurrences to show.

    The text is read at most twice and no vectors are kept: memory grows only with the number of different words. The static vector of a
    word is the mean of layer 0 over its occurrences (all equal where layer 0 reads the word alone). Words are compared as the model's
    tokenizer normalises them (Unicode form, case, accents), and as they are written where it has none. In text without blanks between
    words, give each sentence as `inference.spans.of_pieces` with `word`.
    Raises UserError for a word that does not occur and a layer that the model does not have.
    """
    if not 0 <= layer < model.shape[0]:
        raise UserError(f"layer is {layer}", fix=f"the model has 0 to {model.shape[0] - 1}")
    read = functools.cache(lambda one: model.tokenizer.written(one).strip()) if model.tokenizer else str
    wanted = read(word)
    places = [Occurrence(number, at) for number, some in enumerate(sentences) for at, one in enumerate(some) if read(one) == wanted]
    if not places:
        raise _not_there(sentences, word, wanted, read)
    own = dict(_own(model, sentences, places, layer))
    chosen = [list(own)[at] for at in unlike(_unit(np.stack(list(own.values()))), senses)]
    static, near = _read(model, sentences, layer, {place: own[place] for place in chosen}, count, read)
    return Neighbours(len(own), _nearest(static, wanted, count), [(place, near[place]) for place in chosen])


def _not_there(sentences: Sequence[Sentence], word: str, wanted: str, read: Callable[[str], str]) -> UserError:
    inside = sorted({one for some in sentences for one in some if wanted and wanted in read(one)}, key=lambda one: (len(one), one))
    if inside and not isinstance(sentences[0], Spans):
        shown = f"{word!r} is not a word of the text; {len(inside):,} words contain it, such as {inside[0][:40]!r}"
        return UserError(shown, fix="add --pieces for text without blanks between words, or put blanks between them")
    return UserError(f"{word!r} is not in the text", fix="name a word that is; case and accents count where the vocabulary keeps them")


def unlike(unit: np.ndarray, count: int) -> list[int]:
    """At most `count` indices of unit vectors [n, width]: the most central vector, then repeatedly the one farthest from all chosen
    ones."""
    chosen = [int(np.argmax(unit @ unit.sum(axis=0)))]
    while len(chosen) < min(count, len(unit)):
        closest = (unit @ unit[chosen].T).max(axis=1)
        closest[chosen] = np.inf
        chosen.append(int(np.argmin(closest)))
    return chosen


def _own(model: Model, sentences: Sequence[Sentence], places: Sequence[Occurrence], layer: int) -> Iterator[tuple[Occurrence, np.ndarray]]:
    """(occurrence, vector [width]) of each of `places`, which are in order."""
    holders = {number: [*some] for number, some in itertools.groupby(places, lambda place: place.sentence)}
    found = words.vectors(model, (sentences[number] for number in holders))
    for some, hidden in zip(holders.values(), found, strict=True):
        yield from ((place, hidden[layer, place.word]) for place in some)


def _read(
    model: Model,
    sentences: Sequence[Sentence],
    layer: int,
    asked: dict[Occurrence, np.ndarray],
    count: int,
    read: Callable[[str], str],
) -> tuple[dict[str, tuple[str, np.ndarray]], dict[Occurrence, list[Near]]]:
    """({word as `read` gives it: (how it is first written, sum of its vectors in layer 0)}, {occurrence: its `count` nearest in other
    sentences}) over all sentences."""
    sums: dict[str, tuple[str, np.ndarray]] = {}
    queries, near = _unit(np.stack(list(asked.values()))), {place: [] for place in asked}
    for number, hidden in enumerate(words.vectors(model, sentences)):
        for at, word in enumerate(sentences[number]):
            name, before = sums.get(read(word), (word, 0))
            sums[read(word)] = name, before + hidden[0, at]
        cosines = queries @ _unit(hidden[layer]).T
        for (place, held), row in zip(near.items(), cosines, strict=True):
            if place.sentence == number or not len(row):
                continue
            for at in np.argsort(-row)[:count]:
                one = Near(float(row[at]), Occurrence(number, int(at)))
                (heapq.heappush if len(held) < count else heapq.heappushpop)(held, one)
    return sums, {place: sorted(held, reverse=True) for place, held in near.items()}


def _nearest(static: dict[str, tuple[str, np.ndarray]], wanted: str, count: int) -> list[tuple[float, str]]:
    others = [found for word, found in static.items() if word != wanted]
    if not others:
        return []
    cosines = _unit(np.stack([vector for _, vector in others])) @ _unit(static[wanted][1][None])[0]
    return [(float(cosines[at]), others[at][0]) for at in np.argsort(-cosines, kind="stable")[:count]]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; a zero row stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.finfo(np.float32).tiny)


def lines(found: Neighbours, sentences: Iterable[Sentence], word: str, layer: int, layers: int, around: int = 8) -> Iterator[str]:
    """The neighbours as lines of text. around: words to show on each side."""
    sentences = list(sentences)
    yield f"{word}: {found.occurrences:,} occurrences in {len(sentences):,} sentences"
    yield ""
    yield "without context (layer 0)"
    yield "  " + " · ".join(f"{name} {cosine:.2f}" for cosine, name in found.static)
    for place, near in found.senses:
        yield ""
        yield f"in context (layer {layer} of {layers})"
        yield f"        {shown(sentences[place.sentence], place.word, around)}"
        for cosine, other in near:
            yield f"  {cosine:5.2f} {shown(sentences[other.sentence], other.word, around)}"


def shown(sentence: Sentence, at: int, around: int) -> str:
    """A word in brackets with the words around it."""
    if isinstance(sentence, Spans):
        return sentence.shown(at, around)
    before, after = sentence[max(at - around, 0) : at], sentence[at + 1 : at + 1 + around]
    cut = ("… " if at > around else "", " …" if len(sentence) > at + 1 + around else "")
    return cut[0] + " ".join([*before, f"[{sentence[at]}]", *after]) + cut[1]
