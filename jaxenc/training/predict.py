"""Predictions for held-out rows, one a row, collected on the host in the order of the rows."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxenc import metrics, rng
from jaxenc.data.batch import Batch, empty, row_length
from jaxenc.objectives.base import Objective, Sums
from jaxenc.sharding import partition
from jaxenc.training import compiling
from jaxenc.training.evaluate import held_out_batches, never, padded_batch
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase
from jaxenc.training.state import Layout
from jaxenc.training.step import corrupt
from jaxenc.tree import Tree

# Fields besides those that an objective reads: the number of a row, and whether it is real or padding of the last batch.
INDEX, REAL = "index", "real"
SEGMENTS = "segments"

Predict = Callable[[Tree, Mapping[str, Array], Array], tuple[dict[str, Array], Sums]]


@dataclasses.dataclass(frozen=True, eq=False)
class Predicted:
    """index: u32 [rows], the number of each row within its epoch, in rising order. predictions: {name: [rows, ...]} in that order. sums:
    the metrics of `Objective.terms` over all rows, {} unless they were asked for. All NumPy."""

    index: np.ndarray
    predictions: dict[str, np.ndarray]
    sums: metrics.Sums


def predictions(
    job: Job,
    phase: Phase,
    objective: Objective,
    layout: Layout,
    params: Tree,
    with_sums: bool = False,
    stopping: Callable[[], bool] = never,
) -> Predicted:
    """`predict` of all held-out rows, of every length; of fewer rows where `stopping`, called before every batch, returns True. Raises as
    `held_out_batches`."""

    def step(params: Tree, batch: Mapping[str, Array], seed: Array) -> tuple[dict[str, Array], Sums]:
        of_length = phase.of_length(row_length(batch))
        compiled = lambda: compile_predictions(job.objective(of_length), layout, with_sums)
        build = lambda: compiling.shown(job, "the evaluation", len(batch[INDEX]), of_length.length, compiled())
        return job.programs.once(("predictions", phase, of_length.length, with_sums), build)(params, batch, seed)

    with held_out_batches(job, phase, objective)() as batches:
        asked = itertools.takewhile(lambda _: not stopping(), batches)
        return predict(objective, step, job.run.train.seed, params, asked, job.mesh)


def compile_predictions(objective: Objective, layout: Layout, with_sums: bool = False) -> Predict:
    """A jitted (all parameters, batch, seed) -> ({name: [rows of all processes, ...]}, sums): the predictions, floats in float32, with the
    batch's INDEX and REAL; and with `with_sums` the metrics of the batch, {} without. Keys are those of an evaluation. Every process holds
    all rows of the result.

    It is a separate program from that of `compile_evaluation`, so predictions do not change the numbers by a bit.
    """
    mesh = layout.mesh

    def predict_batch(params: Tree, batch: Mapping[str, Array], seed: Array) -> tuple[dict[str, Array], Sums]:
        keys = rng.evaluation(seed, batch[INDEX])
        example, whole = corrupt(objective, keys, batch, mesh), layout.whole(params)
        found = objective.predict(whole, example, keys)
        as_float32 = {name: a.astype(jnp.float32) if jnp.issubdtype(a.dtype, jnp.floating) else a for name, a in found.items()}
        # The compiler merges this forward pass with that of the predictions.
        sums = objective.terms(whole, {}, example, keys, train=False)[1] if with_sums else {}
        return {**as_float32, INDEX: batch[INDEX], REAL: batch[REAL]}, sums

    return jax.jit(predict_batch, out_shardings=partition.replicated(mesh))


def predict(objective: Objective, step: Predict, seed: int, params: Tree, batches: Iterable[Batch], mesh: Mesh) -> Predicted:
    """The predictions of all rows of all batches.

    step: the function from `compile_predictions`; seed: the run's; batches: this process's rows of each. Where batches have rows of several
    lengths, predictions of the tokens of a row are filled with zeros to the longest. Every process gets all rows. Rows without a token,
    such as padding of the last batch, are left out. A batch moves to the host while the next one is computed, so the devices hold the
    predictions of two batches.
    """
    dispatched = (step(params, partition.place(_rows(objective, batch), mesh), np.int32(seed)) for batch in batches)
    parts, total = [], {}
    for on_device, _ in itertools.pairwise(itertools.chain(dispatched, [None])):
        found, sums = jax.device_get(on_device)
        parts.append({name: array[found[REAL]] for name, array in found.items() if name != REAL})
        total = metrics.add(total, sums)
    if not parts:
        return Predicted(np.zeros(0, np.uint32), {}, {})
    joined = {name: concatenated([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined[INDEX], kind="stable")
    return Predicted(joined.pop(INDEX)[order], {name: array[order] for name, array in joined.items()}, total)


def concatenated(parts: Sequence[np.ndarray]) -> np.ndarray:
    """`parts` one after another, [rows, ...], each filled with zeros where its other axes are shorter than the longest."""
    longest = np.max([part.shape[1:] for part in parts], axis=0)
    filled = [np.pad(part, [(0, 0), *((0, to - size) for to, size in zip(longest, part.shape[1:], strict=True))]) for part in parts]
    return np.concatenate(filled)


def predicted(objective: Objective, layout: Layout, phase: Phase) -> tuple[str, ...]:
    """The names of the objective's predictions, from its shapes; computes nothing."""
    parts = padded_batch(1, layout.mesh)
    batch = _rows(objective, empty({*objective.reads, INDEX, SEGMENTS}, parts, phase.length, objective.fields))
    found, _ = jax.eval_shape(compile_predictions(objective, layout), layout.abstract.all_params, batch, np.int32(0))
    return tuple(name for name in found if name not in (INDEX, REAL))


def _rows(objective: Objective, batch: Batch) -> Batch:
    """The fields of a batch that the function from `compile_predictions` takes."""
    return {name: batch[name] for name in {*objective.reads, INDEX}} | {REAL: batch[SEGMENTS].reshape(len(batch[SEGMENTS]), -1).any(axis=1)}
