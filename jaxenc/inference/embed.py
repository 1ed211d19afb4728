"""Writes the contextual vectors of the words of a text to a file."""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.inference import sentences, vectors, words
from jaxenc.inference.model import Model
from jaxenc.inference.spans import Spans
from jaxenc.layers import scalar_mix
from jaxenc.progress import Bars

LAYERS = ("all", "top", "average")
MIX = "mix:"
SPANS = "spans"
LARGEST = float(np.finfo(np.float32).max)
Mixed = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Written:
    """The number of sentences and words that `embed` wrote, and the width of their vectors."""

    sentences: int
    words: int
    width: int


def embed(
    model: Model, lines: Sequence[str], out: Path, layers: str = "all", batch: int = words.BATCH, stateful: bool = False, by: str = "blanks"
) -> Written:
    """Writes the vectors of the words of each line to the new file `out` (`inference.vectors`: .npz, or .hdf5 as AllenNLP has it).

    layers: `all`, [layers + 1, words, width] for each sentence; the `top` layer or the `average` of all, [words, width]; or `mix:FILE` for
    a scalar mix, [words, width]. batch, stateful: as in `inference.words.vectors`; by: as in `inference.sentences.cut`. Where words are
    pieces, `spans` in the file holds a JSON object, as text: {number of a sentence: [[start, end] of each word, in characters]}. Prints its
    progress to stderr every five seconds. Raises UserError, before any work, for an existing file and for layers that the model does not
    have.
    """
    vectors.check(out)
    states, width = model.shape
    mixed = chosen(layers, states)
    cut = [sentences.cut(model, line, by) for line in lines]
    places = {str(number): one.places for number, one in enumerate(cut) if isinstance(one, Spans)}
    found = words.vectors(model, cut, batch, stateful, top=layers == "top" and not stateful)
    with vectors.writer(out, {SPANS: json.dumps(places)} if places else {}) as add:
        for line, hidden in zip(lines, watched(found, "embed", len(lines)), strict=True):
            add(line, mixed(hidden))
    return Written(len(lines), sum(map(len, cut)), width)


def watched(found: Iterable[np.ndarray], what: str, total: int) -> Iterator[np.ndarray]:
    """The items of `found`, one for each of `total` sentences, with a bar, or a line on stderr every five seconds that says how many there
    were; the first ones, which wait for the compilation, give no rate."""
    started = printed = time.monotonic()
    with Bars().shown(what, total, "sentences") as bar:
        for number, item in enumerate(bar.counting(found), 1):
            yield item
            if time.monotonic() - printed > 5 and not bar.drawn:
                printed = time.monotonic()
                rate = f", {number / (printed - started):,.1f} a second" if number > 1 else ""
                print(f"{what}: {number:,} sentence{'s' * (number > 1)}{rate}", file=sys.stderr)


def chosen(layers: str, states: int) -> Mixed:
    """The function from float32 [states, words, width] to the array that is written. Raises UserError for an unknown choice and for a mix
    with another number of layers."""
    if layers.startswith(MIX):
        return _mix(Path(layers.removeprefix(MIX)), states)
    table: dict[str, Mixed] = {"all": lambda h: h, "top": lambda h: h[-1], "average": lambda h: h.mean(axis=0)}
    if layers not in table:
        raise UserError("no such choice of layers", f"--layers {layers}", f"use {', '.join(LAYERS)} or {MIX}FILE")
    return table[layers]


def _mix(path: Path, states: int) -> Mixed:
    """The scalar mix of a JSON file: `weights` before the softmax, one for each layer and for layer 0, and `gamma`."""
    data = read_json(path, 'write {"weights": [0.0, ...], "gamma": 1.0}')
    weights, gamma = data.get("weights"), data.get("gamma", 1.0)
    numbers = lambda values: all(type(value) in (int, float) and abs(value) <= LARGEST for value in values)
    if not isinstance(weights, list) or not numbers([*weights, gamma]) or data.keys() - {"weights", "gamma"}:
        raise UserError(f"holds {json.dumps(data)[:80]}", path, 'write {"weights": [0.0, ...], "gamma": 1.0}')
    if len(weights) != states:
        raise UserError(f"has {len(weights)} weights, and the model has {states} layers with layer 0", path, "give one for each")
    # Applied to unit vectors, the mix returns the share of each layer.
    shares = np.asarray(scalar_mix.mixed(np.float32(weights), np.float32(gamma), np.eye(states), np.ones(()), False))
    return lambda hidden: np.tensordot(shares, hidden, axes=1)
