"""What is near a word: its occurrences one by one, by their contextual vectors, and the word itself, by the vector it has without context.

How a word with several senses shows that a model tells them apart (Peters et al. 2018, section 5.3 and table 4).
"""

import dataclasses
import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jaxenc.errors import UserError
from jaxenc.inference import words
from jaxenc.inference.load import Model

Sentence = Sequence[str]


class Occurrence(NamedTuple):
    """A word in its sentence, both counted from 0."""

    sentence: int
    word: int


class Near(NamedTuple):
    """cosine: of both vectors, -1 to 1."""

    cosine: float
    place: Occurrence


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """occurrences: how many there are. static: the nearest other words by layer 0, (cosine, word). senses: some of the occurrences, as
    unlike each other as may be, each with the nearest places in other sentences, best first."""

    occurrences: int
    static: list[tuple[float, str]]
    senses: list[tuple[Occurrence, list[Near]]]


def report(model: Model, sentences: Sequence[Sentence], word: str, layer: int, count: int, senses: int) -> Neighbours:
    """The neighbours of `word` in `sentences`. layer: of the contextual vectors, 0 to layers; count: of neighbours of each.

    All of the text is read twice at most and vectors are not kept: memory grows with the number of different words. A word's static
    vector is the mean of layer 0 over its occurrences, which are one vector where layer 0 reads a word alone. Words are compared as they
    are written.
    Raises UserError for a word that is not there and a layer that the model does not have.
    """
    if not 0 <= layer < model.shape[0]:
        raise UserError(f"layer {layer} is asked for, and the model has 0 to {model.shape[0] - 1}")
    holders = [number for number, sentence in enumerate(sentences) if word in sentence]
    if not holders:
        raise UserError(f"{word!r} is not in the text: name a word that stands there as it is written")
    own = dict(_own(model, sentences, holders, word, layer))
    chosen = [list(own)[at] for at in unlike(_unit(np.stack(list(own.values()))), senses)]
    static, near = _read(model, sentences, layer, {place: own[place] for place in chosen}, count)
    return Neighbours(len(own), _nearest(static, word, count), [(place, near[place]) for place in chosen])


def unlike(unit: np.ndarray, count: int) -> list[int]:
    """At most `count` rows of unit vectors [n, width]: the most central one, then always that whose nearest chosen one is farthest."""
    chosen = [int(np.argmax(unit @ unit.sum(axis=0)))]
    while len(chosen) < min(count, len(unit)):
        closest = (unit @ unit[chosen].T).max(axis=1)
        closest[chosen] = np.inf
        chosen.append(int(np.argmin(closest)))
    return chosen


def _own(
    model: Model, sentences: Sequence[Sentence], holders: Sequence[int], word: str, layer: int
) -> Iterator[tuple[Occurrence, np.ndarray]]:
    """(place, vector [width]) of each occurrence of `word`."""
    found = words.vectors(model, (sentences[number] for number in holders))
    for number, hidden in zip(holders, found, strict=True):
        for at, other in enumerate(sentences[number]):
            if other == word:
                yield Occurrence(number, at), hidden[layer, at]


def _read(
    model: Model, sentences: Sequence[Sentence], layer: int, asked: dict[Occurrence, np.ndarray], count: int
) -> tuple[dict[str, np.ndarray], dict[Occurrence, list[Near]]]:
    """({word: mean vector of layer 0}, {place: its nearest `count` in other sentences}) of all sentences."""
    sums: dict[str, np.ndarray] = {}
    queries, near = _unit(np.stack(list(asked.values()))), {place: [] for place in asked}
    for number, hidden in enumerate(words.vectors(model, sentences)):
        for at, word in enumerate(sentences[number]):
            sums[word] = sums.get(word, 0) + hidden[0, at]
        cosines = queries @ _unit(hidden[layer]).T
        for (place, held), row in zip(near.items(), cosines, strict=True):
            if place.sentence == number or not len(row):
                continue
            for at in np.argsort(-row)[:count]:
                one = Near(float(row[at]), Occurrence(number, int(at)))
                (heapq.heappush if len(held) < count else heapq.heappushpop)(held, one)
    return sums, {place: sorted(held, reverse=True) for place, held in near.items()}


def _nearest(static: dict[str, np.ndarray], word: str, count: int) -> list[tuple[float, str]]:
    names = [name for name in static if name != word]
    if not names:
        return []
    cosines = _unit(np.stack([static[name] for name in names])) @ _unit(static[word][None])[0]
    return [(float(cosines[at]), names[at]) for at in np.argsort(-cosines, kind="stable")[:count]]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; a zero row stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.finfo(np.float32).tiny)


def lines(found: Neighbours, sentences: Iterable[Sentence], word: str, layer: int, layers: int, around: int = 8) -> Iterator[str]:
    """The report as text. around: words that are shown on either side."""
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
    """The words around one, which stands in brackets."""
    before, after = sentence[max(at - around, 0) : at], sentence[at + 1 : at + 1 + around]
    cut = ("… " if at > around else "", " …" if len(sentence) > at + 1 + around else "")
    return cut[0] + " ".join([*before, f"[{sentence[at]}]", *after]) + cut[1]
