"""What a run writes down: metrics.jsonl, examples.log, TensorBoard and the progress line; its events are in `training.events`."""

import contextlib
import importlib.util
import itertools
import json
import operator
import pathlib
import re
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxenc import cache
from jaxenc.config import flatten
from jaxenc.errors import UserError
from jaxenc.files import user_errors, write_bytes
from jaxenc.progress import clock
from jaxenc.training import row_file, weights_and_biases
from jaxenc.training.events import Events
from jaxenc.training.row_file import FULL
from jaxenc.training.settings import LogConfig

METRICS = "metrics.jsonl"
_PLAIN = re.compile(r"[\w.-]+")  # characters of the name of a number, but for the marks of letters, which \w leaves out
EXAMPLES = "examples.log"
A_ROW, READABLE = "a row of numbers", "make it a file that can be read"


def as_names(texts: Iterable[str]) -> list[str]:
    """`texts`, all different, as names of numbers in metrics.jsonl, all different and in the same order. An underscore replaces each
    character that `is_name` does not allow. Where an earlier text has that name already, `_2` is added, or `_3`, and so on."""
    found: dict[str, None] = {}
    for text in texts:
        plain = "".join(one if is_name(one) else "_" for one in text) or "_"
        names = itertools.chain([plain], (f"{plain}_{number}" for number in itertools.count(2)))
        found[next(name for name in names if name not in found)] = None
    return [*found]


def cut(workdir: pathlib.Path, step: int) -> int:
    """Drops what a run wrote after `step`, so that a resumed run writes each step once. An unfinished last line is dropped too. Returns the
    last step in either file, or `step` where neither goes further.

    Each file is replaced in one move: a failure or a kill at any point leaves the old file or the new one.
    Raises UserError for a line that is not a row, with its number, and for a disk that refuses; the file then stays as it is.
    """
    reached = step
    metric, example = lambda line: (_row(line)["step"], line), lambda line: (int(line.split(b"\t", 1)[0]), line)
    for name, row_of in ((METRICS, metric), (EXAMPLES, example)):
        path = workdir / name
        if not path.exists():
            continue
        lines = row_file.read(path, row_of, A_ROW, READABLE)
        kept = [line for number, line in lines if number <= step]
        reached = max([reached, *(number for number, _ in lines)])
        with user_errors(path, FULL):
            for left in workdir.glob(f".{name}.*"):  # of a process that was killed here
                left.unlink()
            write_bytes(path, b"".join(kept))
    return reached


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; an unfinished last line is left out. Raises UserError naming a line that is not a row."""
    return row_file.read(path, _row, A_ROW, READABLE)


def rows(workdir: str | pathlib.Path) -> list[dict[str, Any]]:
    """The rows of the metrics.jsonl of a run directory or of its URL. Raises UserError as `read`, and for a run without one."""
    with cache.at_hand(workdir, (METRICS,)) as folder:
        if not (folder / METRICS).is_file():
            raise UserError("no such file", folder / METRICS, "name the directory of a run that has trained")
        return read(folder / METRICS)


def is_name(name: object) -> bool:
    """Whether it is the name of a number: letters and their marks, digits, `_`, `.` and `-`."""
    # Scores of tags are named by types of the user, such as f1_creative-work, or ones with the vowel signs of Devanagari, which are marks.
    if not isinstance(name, str):
        return False
    # The full match alone decides nearly all names, of which a long metrics.jsonl has millions.
    if _PLAIN.fullmatch(name):
        return True
    return name != "" and all(unicodedata.category(one)[0] == "M" for one in _PLAIN.sub("", name))


def is_number(value: object) -> bool:
    """Whether a value of a file is a number that can be printed and drawn, which a very large int is not."""
    return type(value) is float or (type(value) is int and abs(value) <= sys.maxsize)


def _row(line: bytes) -> dict[str, Any]:
    """A row as `Recorder.row` writes it, whose names and numbers can be printed and drawn; any other is an error for `row_file.read`."""
    row = json.loads(line)
    for name, value in row.items():
        if not (isinstance(value, str) if name == "split" else is_name(name) and is_number(value)):
            raise ValueError(f"{name} is {value!r}")
    return row | {"step": operator.index(row["step"]), "split": row["split"]}


def evaluated(workdir: pathlib.Path, step: int) -> bool:
    """Whether metrics.jsonl holds the evaluation of `step`, whole."""
    path = workdir / METRICS
    return path.exists() and any((row["step"], row["split"]) == (step, "held_out") for row in read(path))


class Recorder:
    """Owner of a run's open log files. Rows of metrics.jsonl are `{"step", "split": "train" | "held_out", name: number, ...}`.

    A row holds the numbers of its own step alone, so an interrupted run writes the same rows as one that never stopped; only `seconds`,
    `tokens_per_second` and `mfu` are clocks. events: of the same run. reached: as `cut` returns it.
    """

    def __init__(self, workdir: pathlib.Path, step: int, log: LogConfig, events: Events, config: Mapping[str, Any]) -> None:
        """events: the caller closes them, since a save may end after the recorder is closed. config: the settings of the run, shown by
        TensorBoard and W&B."""
        self.reached, self.events = cut(workdir, step), events
        self._metrics = (workdir / METRICS).open("a", buffering=1)
        self._examples = (workdir / EXAMPLES).open("a", buffering=1) if log.examples else None
        self._board = _board(workdir / "tensorboard", step, config) if log.tensorboard else None
        self._wandb = weights_and_biases.Board(workdir, log, config) if log.wandb else None
        self._started = time.monotonic()

    def row(self, step: int, split: str, numbers: Mapping[str, float]) -> None:
        """One row; floats are written so that they read back as the same float32 or float64."""
        entry: dict[str, Any] = {"step": step, "split": split, **numbers, "seconds": round(time.monotonic() - self._started, 3)}
        with user_errors(self._metrics.name, FULL):
            self._metrics.write(json.dumps(entry) + "\n")
        if self._board is not None:
            for name, value in numbers.items():
                self._board.add_scalar(f"{split}/{name}", value, step)
        if self._wandb is not None:
            self._wandb.row(step, split, numbers)

    def rows_of_step(self, step: int, index: np.ndarray, epoch: np.ndarray) -> None:
        """A line of examples.log: step, tab, `epoch:index` of each row of the batch that step consumed, in slot order."""
        if self._examples is not None:
            with user_errors(self._examples.name, FULL):
                self._examples.write(f"{step}\t{row_ids(index, epoch)}\n")

    def say(self, line: str) -> None:
        """A line on the terminal."""
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Closes the files; what was written is on the disk already, line by line."""
        for file in (self._metrics, self._examples, self._board, self._wandb):
            if file is not None:
                with user_errors(METRICS, FULL):
                    file.close()


class Silent(Recorder):
    """The Recorder of every process but process 0."""

    def __init__(self, events: Events) -> None:
        self.reached, self.events = 0, events

    def row(self, step: int, split: str, numbers: Mapping[str, float]) -> None:
        """Writes nothing."""

    def rows_of_step(self, step: int, index: np.ndarray, epoch: np.ndarray) -> None:
        """Writes nothing."""

    def say(self, line: str) -> None:
        """Writes nothing."""

    def close(self) -> None:
        """Writes nothing."""


def row_ids(index: np.ndarray, epoch: np.ndarray) -> str:
    """`epoch:index` of each row of a batch, in slot order. index, epoch: whole numbers [batch]."""
    return " ".join(f"{e}:{i}" for e, i in zip(epoch, index, strict=True))


def progress(step: int, steps: int, numbers: Mapping[str, float], seconds_left: float) -> str:
    """The progress line: step, loss, accuracies, padding and mask rate; speed, utilisation and time left where they are known."""
    parts = [f"step {step:,}/{steps:,}", f"loss {numbers['loss']:.3f}"]
    parts += [f"{name.removesuffix('_accuracy')} acc {value:.3f}" for name, value in numbers.items() if name.endswith("_accuracy")]
    if "tokens_per_second" in numbers:
        parts.append(f"{numbers['tokens_per_second']:,.0f} tok/s")
    if numbers.get("mfu"):
        parts.append(f"mfu {numbers['mfu']:.1%}")
    parts += [f"{label} {numbers[name]:.1%}" for name, label in (("padding", "pad"), ("mask_rate", "masked")) if name in numbers]
    if numbers["skipped"]:
        parts.append(f"skipped {numbers['skipped']:.0f}")
    if "tokens_per_second" in numbers:
        parts.append(f"eta {clock(seconds_left)}")
    return "  ".join(parts)


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Makes importing the module `name` fail in the block, unless it has been imported before."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None
    try:
        yield
    finally:
        del sys.modules[name]


def _board(directory: pathlib.Path, step: int, config: Mapping[str, Any]) -> Any:
    """A TensorBoard writer that hides what an earlier run wrote after `step`, or None where tensorboardX is not installed. Its tab Text
    shows `config`."""
    if importlib.util.find_spec("tensorboardX") is None:
        return None
    with _hidden("torch"):  # tensorboardX imports it where it is installed, for one annotation: seconds and 200 MB
        from tensorboardX import SummaryWriter

    board = SummaryWriter(str(directory), purge_step=step + 1)
    # Indented text is a block of code in Markdown.
    board.add_text("config", "\n".join(f"    {path} = {value!r}" for path, value in flatten(config)), step)
    return board
