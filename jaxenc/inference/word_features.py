"""Features of the words of sentences of any length, from all layers of a model, in a file that is mapped into memory."""

import pathlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxenc.files import mapped
from jaxenc.inference import words
from jaxenc.inference.embed import watched
from jaxenc.inference.model import Model
from jaxenc.tasks import word_windows

# Pieces that a window leaves free: its first word may have more pieces at the start of a row than within a sentence.
SPARE = 8


def vectors(model: Model, sentences: Sequence[Sequence[str]]) -> Iterator[np.ndarray]:
    """float32 [layers + 1, words, width] for each sentence, as `words.vectors`, but for sentences of any length.

    A sentence longer than the model's rows is read in windows that are cut between words and overlap by half; each word gets its vector
    from the window where it has the most context (`word_windows.scored_in`), and zeros if it has no pieces.
    """
    plans = [_windows(model, sentence) for sentence in sentences]
    parts = (sentence[first:end] for sentence, (found, _) in zip(sentences, plans, strict=True) for first, end in found)
    read = words.vectors(model, parts)
    states, width = model.shape
    for sentence, (found, chosen) in zip(sentences, plans, strict=True):
        if len(found) == 1:
            yield next(read)
            continue
        out = np.zeros((states, len(sentence), width), np.float32)
        for number, (first, _) in enumerate(found):
            own, part = np.flatnonzero(chosen == number), next(read)
            out[:, own] = part[:, own - first]
        yield out


def write(model: Model, sentences: Sequence[Sequence[str]], file: pathlib.Path, pooled: bool) -> np.ndarray:
    """float32 [units, layers + 1, width], mapped from the new `file`: one unit per word or, if `pooled`, one per sentence, the mean
    over its words, or zeros without words. Prints progress to stderr every five seconds. Raises OSError for a full disk."""
    states, width = model.shape
    count = len(sentences) if pooled else sum(map(len, sentences))
    unit: Callable[[np.ndarray], np.ndarray] = _mean if pooled else lambda array: array.swapaxes(0, 1)
    # Written and then mapped: a full disk is an error of a write, and the end of a process that writes through a map (SIGBUS).
    with open(file, "wb") as out:
        header = {"descr": "<f4", "fortran_order": False, "shape": (count, states, width)}
        np.lib.format.write_array_header_1_0(out, header)
        for array in watched(vectors(model, sentences), "features", len(sentences)):
            out.write(unit(array).astype("<f4").tobytes())
    return mapped(file)


def _windows(model: Model, sentence: Sequence[str]) -> tuple[list[word_windows.Window], np.ndarray]:
    """(the windows of a sentence, for each word the number of the window it is read in)."""
    limit = model.config.model.positions
    whole = [(0, len(sentence))], np.zeros(len(sentence), np.int32)
    if not limit or model.tokenizer is None:
        return whole
    ids, _, numbers = model.tokenizer.encode_split(sentence)
    if len(ids) <= limit:
        return whole
    pieces = np.bincount([number for number in numbers if number >= 0], minlength=len(sentence)).tolist()
    room = max(limit - sum(number < 0 for number in numbers) - SPARE, 1)
    found = word_windows.windows(pieces, room, max(room // 2, 1))
    return found, word_windows.scored_in(found, pieces)


def _mean(array: np.ndarray) -> np.ndarray:
    """[1, layers + 1, width] of [layers + 1, words, width]."""
    return array.sum(axis=1)[None] / max(array.shape[1], 1)
