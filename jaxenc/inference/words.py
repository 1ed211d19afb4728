"""Contextual vectors of words, one for each word and layer, from a model of any family."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import jax
import numpy as np

from jaxenc.data.batch import Batch
from jaxenc.errors import UserError
from jaxenc.families.both_directions import BothDirections, TwoReaders
from jaxenc.inference import inputs
from jaxenc.inference.inputs import compiled_length
from jaxenc.inference.model import Model
from jaxenc.inference.network import exact
from jaxenc.inference.spans import Spans
from jaxenc.tree import Tree

BATCH = 32
# Batches of sentences that are sorted by length together, and whose vectors are in memory at a time.
WINDOW = 8

Sentence = Sequence[str]  # words that stand with a blank between them, or `Spans` of a text that is read as it stands


def vectors(
    model: Model, sentences: Iterable[Sentence], batch: int = BATCH, stateful: bool = False, top: bool = False
) -> Iterator[np.ndarray]:
    """float32 [layers + 1, words, width] for each sentence, in order; layer 0 is the input of the first layer. top: the last layer alone,
    [1, words, width], which spares copying the others from the device; `stateful` does not take it.

    A sentence is read between the tokenizer's special tokens, whose vectors are dropped. The vector of a word is the mean over its pieces,
    or zeros without pieces (a word that the tokenizer's normaliser removes); the pieces of a word of `Spans` are those that overlap it.
    Memory does not grow with the number of sentences. The result for a sentence is bitwise independent of the other sentences: the compiled
    shape depends only on its own length and on `batch`.
    stateful: instead, as ELMo was released, sentence i continues from the state, of each direction, that sentence i - batch left, markers
    included (bilm/model.py of allenai/bilm-tf; `stateful` in allennlp's modules/elmo_lstm.py). Raises UserError for a sentence that is too
    long for the model, and for `stateful` with a model that has no state.
    """
    if batch < 1:
        raise UserError(f"the batch is {batch}", fix="it takes 1 or more sentences")
    if stateful:
        yield from _stateful(model, sentences, batch)
        return
    sentences = iter(sentences)
    while window := list(itertools.islice(sentences, WINDOW * batch)):
        yield from _window(model, window, batch, "top" if top else "hidden")


def _window(model: Model, sentences: Sequence[Sentence], batch: int, output: str) -> list[np.ndarray]:
    """Computes sentences of similar length together, always `batch` rows of one length."""
    # A number within this window would mislead, so messages quote the start of the sentence.
    called = lambda index: f"the sentence that begins with {_quoted(sentences[index])!r}"
    rows, places = _rows(model, sentences, called)
    buckets: dict[int, list[int]] = {}
    for index, length in enumerate(rows["segments"].sum(axis=1)):
        buckets.setdefault(compiled_length(int(length)), []).append(index)
    started = []
    for length, members in buckets.items():
        for start in range(0, len(members), batch):
            chosen = members[start : start + batch]
            some = {field: array[chosen, :length] for field, array in rows.items()}
            started.append((chosen, model.compute(output, inputs.filled(some, batch, some["tokens"].shape[1]))))
    out: dict[int, np.ndarray] = {}
    for chosen, computed in started:
        hidden = np.asarray(computed)
        out |= {index: _of_words(hidden[:, at], places[index]) for at, index in enumerate(chosen)}
    return [out[index] for index in range(len(sentences))]


def _quoted(sentence: Sentence) -> str:
    return (sentence.text if isinstance(sentence, Spans) else " ".join(sentence))[:40]


def _rows(model: Model, sentences: Sequence[Sentence], called: Callable[[int], str]) -> tuple[Batch, list[np.ndarray]]:
    """(rows, for each sentence i64 [words, 2]: the first place and the end of each word)."""
    if spans := [one for one in sentences if isinstance(one, Spans)]:
        if len(spans) < len(sentences):
            raise UserError("some sentences are lists of words and some are spans of a text", fix="give one kind in a call")
        return inputs.of_spans(model.config.model, model.tokenizer, spans, called)
    rows, numbers = inputs.of_words(model.config.model, model.tokenizer, sentences, called)
    return rows, [_places(own, len(sentence)) for own, sentence in zip(numbers, sentences, strict=True)]


def _places(numbers: np.ndarray, words: int) -> np.ndarray:
    """i64 [words, 2] from the number of the word at each place: the first place of a word and its end. They follow one another."""
    out, (places,) = np.zeros((words, 2), np.int64), np.nonzero(numbers >= 0)
    found, first, count = np.unique(numbers[places], return_index=True, return_counts=True)
    out[found] = np.stack([places[first], places[first] + count], axis=1)
    return out


def _of_words(hidden: np.ndarray, places: np.ndarray) -> np.ndarray:
    """[layers, words, width]: for each word, the mean of hidden [layers, places, width] over its places (i64 [words, 2])."""
    out, there = np.zeros((hidden.shape[0], len(places), hidden.shape[2]), np.float32), places[:, 1] > places[:, 0]
    if there.any():
        # An end may be the end of the row, which `reduceat` does not take.
        longer, own = np.pad(hidden, [(0, 0), (0, 1), (0, 0)]), places[there]
        out[:, there] = np.add.reduceat(longer, own.ravel(), axis=1)[:, ::2] / (own[:, 1] - own[:, 0])[:, None].astype(np.float32)
    return out


def _stateful(model: Model, sentences: Iterable[Sentence], batch: int) -> Iterator[np.ndarray]:
    """As `vectors` with `stateful`: batch after batch, each row continues from its state."""
    config = model.config.model
    if not isinstance(config, BothDirections):
        raise UserError(f"a model of kind {config.kind} has no state from sentence to sentence", fix="leave out stateful")
    readers, sentences = config.readers(exact()), iter(sentences)
    step, state = _step(readers), readers.zero_state(batch)
    while group := list(itertools.islice(sentences, batch)):
        rows, places = _rows(model, group, "words[{}]".format)
        hidden, state = step(model.params, inputs.filled(rows, batch, compiled_length(rows["tokens"].shape[1])), state)
        hidden = np.asarray(hidden)
        yield from (_of_words(hidden[:, at], own) for at, own in enumerate(places))


def _step(readers: TwoReaders) -> Callable[[Tree, Batch, Tree], tuple[jax.Array, Tree]]:
    @jax.jit
    def step(params: Tree, rows: Batch, state: Tree) -> tuple[jax.Array, Tree]:
        with jax.default_matmul_precision("highest"):
            return readers.text(params, rows["tokens"], rows.get("characters"), rows["segments"], state)

    return step
