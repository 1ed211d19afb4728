"""`jaxenc embed`: contextual vectors of the words of a text, in a file."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from jaxenc.data import readers
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.inference import vectors, words
from jaxenc.inference.load import Model, load
from jaxenc.layers import scalar_mix

LAYERS = ("all", "top", "average")
MIX = "mix:"
LARGEST = float(np.finfo(np.float32).max)
Mixed = Callable[[np.ndarray], np.ndarray]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="DIR", help="a run's directory, or the folder of one checkpoint")
    parser.add_argument("--input", required=True, metavar="FILE", help="text, a sentence a line, its words between blanks")
    parser.add_argument("--raw", action="store_true", help="the model's tokenizer cuts the words of a line")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write: .npz, or .hdf5 as AllenNLP writes it")
    told = 'all, [layers, words, width] (default), the top one or their average, [words, width], or a mix: {"weights": [...], "gamma": 1}'
    parser.add_argument("--layers", default="all", metavar="all|top|average|mix:FILE", help=told)
    parser.add_argument("--batch", type=int, default=words.BATCH, metavar="N", help="sentences at a time (default: %(default)s)")
    told = "line i starts from the state after line i - N, where N is --batch, as allenai/bilm-tf does"
    parser.add_argument("--stateful", action="store_true", help=told)


def run(args: argparse.Namespace) -> int:
    """Writes the file; prints how many sentences and words. Raises UserError."""
    vectors.check(args.out)
    lines = list(read(args.input))
    if args.stateful and args.batch >= len(lines):
        print(f"embed: --batch {args.batch} is no less than the {len(lines)} lines, so none goes on from another", file=sys.stderr)
    model = load(args.model)
    states, width = model.shape
    mixed = chosen(args.layers, states)
    sentences = [cut(model, line, args.raw) for line in lines]
    with vectors.writer(args.out) as add:
        found = watched(words.vectors(model, sentences, args.batch, args.stateful), "embed")
        for line, hidden in zip(lines, found, strict=True):
            add(line, mixed(hidden))
    print(f"{args.out}: {len(lines):,} sentences, {sum(map(len, sentences)):,} words, vectors of {width}")
    return 0


def read(name: str) -> Iterator[str]:
    r"""The lines of a file in UTF-8 without what ends them, \n or \r\n, empty ones too. Raises UserError naming the line that is not."""
    readers.check_file(name)
    with open(name, "rb") as file:
        for number, raw in enumerate(file, 1):
            raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            try:
                yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"{name}:{number}: not UTF-8: save the file in UTF-8") from error


def cut(model: Model, line: str, raw: bool) -> list[str]:
    """The words of a line: what stands between blanks, or what the model's tokenizer cuts. Raises UserError where it has none."""
    if not raw:
        return line.split()
    if model.tokenizer is None:
        raise UserError("--raw: this model has no tokenizer: write blanks between the words and leave --raw out")
    return model.tokenizer.split(line)


def watched(found: Iterable[np.ndarray], what: str) -> Iterator[np.ndarray]:
    """`found` as it is; every five seconds a line on stderr tells how many."""
    started = told = time.monotonic()
    for number, item in enumerate(found, 1):
        yield item
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(f"{what}: {number:,} sentences, {number / (told - started):,.1f} a second", file=sys.stderr)


def chosen(layers: str, states: int) -> Mixed:
    """What makes of float32 [states, words, width] what is written. Raises UserError for an unknown choice and a mix of other layers."""
    if layers.startswith(MIX):
        return _mix(Path(layers.removeprefix(MIX)), states)
    table: dict[str, Mixed] = {"all": lambda h: h, "top": lambda h: h[-1], "average": lambda h: h.mean(axis=0)}
    if layers not in table:
        raise UserError(f"--layers {layers}: it takes {', '.join(LAYERS)} or {MIX}FILE")
    return table[layers]


def _mix(path: Path, states: int) -> Mixed:
    """The scalar mix in a JSON file: `weights` before their softmax, one a layer with layer 0, and `gamma`."""
    data = read_json(path, 'write {"weights": [0.0, ...], "gamma": 1.0}')
    weights, gamma = data.get("weights"), data.get("gamma", 1.0)
    numbers = lambda values: all(type(value) in (int, float) and abs(value) <= LARGEST for value in values)
    if not isinstance(weights, list) or not numbers([*weights, gamma]) or data.keys() - {"weights", "gamma"}:
        raise UserError(f'{path}: holds {json.dumps(data)[:80]}; write {{"weights": [0.0, ...], "gamma": 1.0}}')
    if len(weights) != states:
        raise UserError(f"{path}: weighs {len(weights)} layers, and the model has {states} with layer 0: one weight for each")
    # What it makes of unit vectors is how much of each layer it takes.
    shares = np.asarray(scalar_mix.mixed(np.float32(weights), np.float32(gamma), np.eye(states), np.ones(()), False))
    return lambda hidden: np.tensordot(shares, hidden, axes=1)
