"""Fine-tunes a model on a task here and in a peer, from the same parameters and on the same batches, for `jaxenc bench finetune`."""

import dataclasses
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxenc.bench import handover
from jaxenc.bench.peer import answer
from jaxenc.errors import UserError
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.prepare import Tuning, open_task
from jaxenc.tasks.tuning import FineTune
from jaxenc.training import record

# How far the losses of the same steps may be apart in float32 without dropout.
AGREE = 1e-3


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """What one side gives.

    side, device: its libraries, and where they ran. metric, scores: the task's first metric on the dev set, of each seed. seconds: of each
    seed, from its first parameters to its score. examples_per_second: of each seed, in the second half of its steps. losses: float [steps
    that were reported] of each seed.
    """

    side: str
    device: str
    metric: str
    scores: Sequence[float]
    seconds: Sequence[float]
    examples_per_second: Sequence[float]
    losses: Sequence[np.ndarray]

    @property
    def mean(self) -> float:
        """Of the scores."""
        return statistics.fmean(self.scores)

    @property
    def std(self) -> float:
        """Of the scores, of a sample; NaN for one seed."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else math.nan

    def to_json(self) -> dict[str, Any]:
        """The fields, with the last losses in place of all, and the mean and the spread of the scores."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        last = [float(losses[-1]) for losses in self.losses]
        return {**fields, "losses": last, "mean": self.mean, "std": None if math.isnan(self.std) else self.std}


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Both sides of the same work."""

    ours: Side
    theirs: Side

    @property
    def difference(self) -> float:
        """Of the mean scores."""
        return self.ours.mean - self.theirs.mean

    @property
    def bound(self) -> float:
        """3 · pooled standard deviation · sqrt(2 / seeds): three standard errors of the difference; NaN for one seed."""
        pooled = math.sqrt((self.ours.std**2 + self.theirs.std**2) / 2)
        return 3 * pooled * math.sqrt(2 / len(self.ours.scores))

    @property
    def of_losses(self) -> float:
        """The largest difference of two losses of one step."""
        return max(float(np.abs(a - b).max()) for a, b in zip(self.ours.losses, self.theirs.losses, strict=True))


def settings(tune: FineTune, losses: int) -> FineTune:
    """`tune` as both sides run it: saved after the last step only, since the peer saves nothing; with `losses`, so many steps in float32
    without dropout, each reported. Raises UserError for a step chosen on the dev set."""
    if tune.train.select != "last":
        raise UserError(f"train.select is {tune.train.select}", fix="set train.select=last: the peer is scored after its last step")
    tune = dataclasses.replace(tune, checkpoint=dataclasses.replace(tune.checkpoint, every=10**9))
    if not losses:
        return tune
    exact = dataclasses.replace(tune.train, steps=losses, dropout=False, precision="float32")
    return dataclasses.replace(tune, train=exact, log=dataclasses.replace(tune.log, every=1))


def ours(tune: FineTune, init_from: str, seeds: int, workdir: Path) -> Side:
    """What `jaxenc finetune` gives in `workdir`. Raises UserError as that, and where a seed diverges."""
    results = finetune(tune, init_from, workdir, seeds)
    if wrong := next((one for one in results.seeds if one.failed), None):
        raise UserError(f"seed {wrong.seed} failed: {wrong.failed}", fix="lower optim.lr")
    if results.preempted:
        raise UserError("stopped", fix="run the command again")
    rows = [record.read(Path(one.directory) / record.METRICS) for one in results.seeds]
    trained = [[row for row in some if row["split"] == "train"] for some in rows]
    return Side(
        f"jaxenc, jax {jax.__version__}",
        jax.devices()[0].device_kind,
        results.metric,
        [one.scores[results.metric] for one in results.seeds],
        [one.seconds for one in results.seeds],
        [rate(some, tune.train.batch) for some in trained],
        [np.array([row["loss"] for row in some]) for some in trained],
    )


def rate(rows: Sequence[Mapping[str, Any]], batch: int) -> float:
    """Examples a second from the first row of metrics.jsonl in the second half of a run to its last row; from the first of all to the last
    where the half has one row only."""
    last = rows[-1]
    first = next(row for row in rows if 2 * row["step"] >= last["step"])
    first = first if first is not last else rows[0]
    return batch * (last["step"] - first["step"]) / max(last["seconds"] - first["seconds"], 1e-3)


def theirs(tuning: Tuning, seeds: int, peer: str, folder: Path) -> Side:
    """What transformers gives on the batches of our seeds, from their first parameters; files go to `folder`.

    It runs in a process of its own, beside this one: where JAX has reserved too much of the device's memory for it, lower
    XLA_PYTHON_CLIENT_MEM_FRACTION. Raises UserError as `handover.write` and as `peer.answer`.
    """
    first = tuning.tune.train.seed
    asked = handover.write(tuning, range(first, first + seeds), folder)
    found = answer("jaxenc.bench.peer_tune", asked, peer)
    arrays = [dict(np.load(one["found.npz"])) for one in asked["seeds"]]
    scores = [_score(tuning, one["logits"]) for one in arrays]
    return Side(**found, metric=tuning.task.metric, scores=scores, losses=[one["losses"] for one in arrays])


def _score(tuning: Tuning, logits: np.ndarray) -> float:
    dev, head = tuning.splits["dev"], handover.head(tuning)
    # transformers keeps the axis of a single number.
    logits = logits[: len(dev.features)].squeeze(-1) if logits.shape[-1] == 1 else logits[: len(dev.features)]
    answers = tuning.task.answers(dev.examples, dev.features, {head.name: np.asarray(head.prediction(logits))})
    return tuning.task.score(answers, dev.examples)[tuning.task.metric]


def compare(tune: FineTune, init_from: str, seeds: int, peer: str) -> Comparison:
    """Both sides of `tune`, in temporary folders; raises UserError as `ours` and `theirs`. Call `settings` first.

    In float32 our products have all of its digits, as torch's have; by default a GPU rounds their factors to TF32.
    """
    exact = jax.default_matmul_precision("highest" if tune.train.precision == "float32" else None)
    with exact, tempfile.TemporaryDirectory() as folder:
        they = theirs(open_task(tune, init_from), seeds, peer, Path(folder, "peer"))
        return Comparison(ours(tune, init_from, seeds, Path(folder, "ours")), they)


def table(name: str, found: Comparison) -> list[str]:
    """The lines that a terminal shows: a header and the row of one task."""
    us, them = found.ours, found.theirs
    spread = lambda side: f"{side.mean:.4f} ± {side.std:.4f}" if len(side.scores) > 1 else f"{side.mean:.4f}"
    inside = "" if math.isnan(found.bound) else "yes" if abs(found.difference) <= found.bound else "NO"
    fast, slow = statistics.median(us.examples_per_second), statistics.median(them.examples_per_second)
    each = lambda side: f"{statistics.fmean(side.seconds):.1f}"
    columns = [
        ("task", name),
        ("metric", us.metric),
        ("jaxenc", spread(us)),
        ("peer", spread(them)),
        ("difference", f"{found.difference:+.4f}"),
        ("bound", f"{found.bound:.4f}"),
        ("inside", inside),
        ("s/seed", each(us)),
        ("peer", each(them)),
        ("examples/s", f"{fast:,.0f}"),
        ("peer", f"{slow:,.0f}"),
        ("ratio", f"{fast / slow:.2f}"),
    ]
    widths = [max(map(len, column)) for column in columns]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in zip(*columns, strict=True))
    return [line.rstrip() for line in lines]
