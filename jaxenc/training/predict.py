"""Predictions for held-out rows, one a row, collected on the host in the order of the rows."""

import itertools
from collections.abc import Callable, Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxenc import rng
from jaxenc.data.batch import Batch, empty
from jaxenc.objectives.base import Objective
from jaxenc.sharding import partition
from jaxenc.training.evaluate import padded_batch
from jaxenc.training.phases import Phase
from jaxenc.training.state import Layout
from jaxenc.training.step import corrupt
from jaxenc.tree import Tree

# Fields besides those that an objective reads: the number of a row, and whether it is real or padding of the last batch.
INDEX, REAL = "index", "real"
SEGMENTS = "segments"

Predict = Callable[[Tree, Mapping[str, Array], Array], dict[str, Array]]


def compile_predictions(objective: Objective, layout: Layout) -> Predict:
    """A jitted (all parameters, batch, seed) -> {name: [rows of all processes, ...]}: the predictions, floats in float32, and the batch's
    INDEX and REAL. Keys are those of an evaluation. Every process holds all rows of the result.

    It is a separate program from that of `compile_evaluation`, so predictions do not change the numbers by a bit.
    """
    mesh = layout.mesh

    def predict_batch(params: Tree, batch: Mapping[str, Array], seed: Array) -> dict[str, Array]:
        keys = rng.evaluation(seed, batch[INDEX])
        example = corrupt(objective, keys, batch, mesh)
        found = objective.predict(layout.whole(params), example, keys)
        as_float32 = {name: a.astype(jnp.float32) if jnp.issubdtype(a.dtype, jnp.floating) else a for name, a in found.items()}
        return {**as_float32, INDEX: batch[INDEX], REAL: batch[REAL]}

    return jax.jit(predict_batch, out_shardings=partition.replicated(mesh))


def predict(
    objective: Objective, step: Predict, seed: int, params: Tree, batches: Iterable[Batch], mesh: Mesh
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(index u32 [rows], {name: [rows, ...]}) over all batches, NumPy: the number of each row within its epoch, in rising order, and its
    predictions.

    step: the function from `compile_predictions`; seed: the run's; batches: this process's rows of each, all of one shape. Every process
    gets all rows. Rows without a token, such as padding of the last batch, are left out. A batch moves to the host while the next one is
    computed, so the devices hold the predictions of two batches.
    """
    dispatched = (step(params, partition.place(_rows(objective, batch), mesh), np.int32(seed)) for batch in batches)
    parts = []
    for on_device, _ in itertools.pairwise(itertools.chain(dispatched, [None])):
        found = jax.device_get(on_device)
        parts.append({name: array[found[REAL]] for name, array in found.items() if name != REAL})
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined[INDEX], kind="stable")
    return joined.pop(INDEX)[order], {name: array[order] for name, array in joined.items()}


def predicted(objective: Objective, layout: Layout, phase: Phase) -> tuple[str, ...]:
    """The names of the objective's predictions, from its shapes; computes nothing."""
    parts = padded_batch(1, layout.mesh)
    batch = _rows(objective, empty({*objective.reads, INDEX, SEGMENTS}, parts, phase.length, objective.fields))
    found = jax.eval_shape(compile_predictions(objective, layout), layout.abstract.all_params, batch, np.int32(0))
    return tuple(name for name in found if name not in (INDEX, REAL))


def _rows(objective: Objective, batch: Batch) -> Batch:
    """The fields of a batch that the function from `compile_predictions` takes."""
    return {name: batch[name] for name in {*objective.reads, INDEX}} | {REAL: batch[SEGMENTS].reshape(len(batch[SEGMENTS]), -1).any(axis=1)}
