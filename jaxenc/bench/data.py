"""How fast the batches of each kind of row are made, and whether a training loop waits for them."""

import contextlib
import dataclasses
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from jaxenc.bench.clock import seconds_a_call
from jaxenc.data.build import build
from jaxenc.data.pipeline import open_batches, prefetch
from jaxenc.data.sources import DataConfig
from jaxenc.data.tokenizers import word_list

# What is timed, with the rows of a batch: each kind of row at its usual lengths.
KINDS = (
    (DataConfig(rows="text", length=128), 256),
    (DataConfig(rows="text", length=512), 64),
    (DataConfig(rows="full_sentences", length=128), 256),
    (DataConfig(rows="full_sentences", length=512), 64),
    (DataConfig(rows="doc_sentences", length=512), 64),
    (DataConfig(rows="packed", length=128), 256),
    (DataConfig(rows="packed", length=512), 64),
    (DataConfig(rows="bucketed", length=512, lengths=(64, 128, 256, 512)), 64),
    (DataConfig(rows="pairs", length=128), 256),
    (DataConfig(rows="pairs", length=512), 64),
    (DataConfig(rows="swapped_pairs", length=512), 64),
    (DataConfig(rows="streams", length=512, reuse=256), 64),
    (DataConfig(rows="sentences", length=20), 256),
)
# Tokens a second that the measured training loop consumes: more than a small model on one GPU of today.
CONSUMED = 3_000_000
WAIT = 0.001  # seconds; a batch that took longer to arrive was waited for


@dataclasses.dataclass(frozen=True)
class Timing:
    """rows, length, batch: what was made; length is that of the longest rows. padding: share of the tokens of these batches.
    tokens_per_second: tokens of a batch, padding included, by the CPU seconds of this process. waited: share of the batches that a loop
    consuming CONSUMED tokens a second waited for, after the first; loop_tokens_per_second: what it got."""

    rows: str
    length: int
    batch: int
    padding: float
    tokens_per_second: float
    waited: float
    loop_tokens_per_second: float


def time_rows(folder: str, config: DataConfig, batch: int, steps: int) -> Timing:
    """Times `steps` batches of the training split of a data folder, and a loop that consumes as many. Raises UserError for rows that the
    folder cannot give."""
    batch_at, numbers = open_batches(dataclasses.replace(config, path=folder), "train", batch, 0, 0).batch_at, itertools.count()
    batch_at(0)

    def make() -> None:
        batch_at(next(numbers))

    seconds = seconds_a_call(make, steps)
    segments = [batch_at(step)["segments"] for step in range(steps)]
    size = statistics.mean(array.size for array in segments)
    padding = 1 - statistics.mean(int(np.count_nonzero(array)) for array in segments) / size
    waited, reached = consume(batch_at, max(steps, 2), size, CONSUMED)
    return Timing(config.rows, config.length, batch, padding, size / seconds.cpu, waited, reached)


def consume(batch_at: Callable[[int], object], steps: int, size: float, rate: float) -> tuple[float, float]:
    """(share of the batches that were waited for, tokens a second) of a loop that prefetches batches of `size` tokens on average, as
    training does, and takes one every size / rate seconds. The first batch, which cannot be ready in time, is not counted."""
    waits, batches = 0, prefetch(batch_at, range(steps))
    with contextlib.closing(batches):
        next(batches)
        began = due = time.monotonic()
        for _ in range(steps - 1):
            due = max(due + size / rate, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0))
            asked = time.monotonic()
            next(batches)
            waits += time.monotonic() - asked > WAIT
    return waits / (steps - 1), (steps - 1) * size / (time.monotonic() - began)


@contextlib.contextmanager
def made_up(documents: int = 2000) -> Iterator[str]:
    """A temporary data folder of made-up text, the same every time: documents of 1 to 40 sentences of 1 to 40 words, with frequencies that
    fall as 1 / rank (Zipf)."""
    draw = np.random.default_rng(0)
    words = np.array(["".join(draw.choice(list("aeiourstlnmkd"), draw.integers(2, 9))) for _ in range(20_000)])
    chances = 1 / np.arange(1, len(words) + 1)
    chances /= chances.sum()
    sentence = lambda: " ".join(words[draw.choice(len(words), draw.integers(1, 41), p=chances)]) + " ."
    texts = ["\n".join(sentence() for _ in range(draw.integers(1, 41))) for _ in range(documents)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "text.txt").write_text("\n\n".join(texts))
        word_list.train(texts, 10_000).save(folder / "tokenizer")
        build([str(folder / "text.txt")], folder / "tokenizer", folder / "data", 0.0)
        yield str(folder / "data")
