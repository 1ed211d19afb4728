"""Held-out numbers: the training objective on every example once, with masks that never change."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxenc import metrics, rng
from jaxenc.data import pipeline
from jaxenc.data.batch import Batch
from jaxenc.errors import UserError, no_memory
from jaxenc.objectives.base import Objective, Sums
from jaxenc.sharding import partition
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase
from jaxenc.training.read import reader
from jaxenc.training.state import Layout, zero_carry
from jaxenc.training.step import corrupt
from jaxenc.tree import Tree


def never() -> bool:
    """Where nothing asks an evaluation to stop."""
    return False


def evaluation(job: Job, phase: Phase, objective: Objective, place: Layout) -> Callable[..., Mapping[str, float]]:
    """A function (all parameters, `stopping`) -> the held-out numbers: `evaluate` of all held-out batches. Its first use opens the data and
    compiles; it raises as `read_ahead` does, and UserError where the device runs out of memory."""
    compiled, one_pass = compile_evaluation(objective, place), held_out_batches(job, phase, objective)

    def assess(params: Tree, stopping: Callable[[], bool] = never) -> Mapping[str, float]:
        with one_pass() as batches:
            return evaluate(objective, compiled, job.run.train.seed, params, batches, job.mesh, stopping)

    return assess


def held_out_batches(job: Job, phase: Phase, objective: Objective) -> Callable[[], AbstractContextManager[Iterator[Batch]]]:
    """A function that opens one pass over the held-out rows: this process's rows of each batch, read ahead by a thread.

    The data is opened on the first pass. Raises as `reader` does; where the device runs out of memory in the block, UserError says what to
    lower.
    """
    rows = padded_batch(job.run.eval.batch, job.mesh)
    opened = functools.cache(lambda: reader(job, "held_out", phase, rows, objective))

    @contextlib.contextmanager
    def one_pass() -> Iterator[Iterator[Batch]]:
        batch_at, count = opened()
        with contextlib.closing(pipeline.prefetch(batch_at, range(count))) as batches:
            try:
                yield batches
            except jax.errors.JaxRuntimeError as error:
                if told := no_memory(error, "lower the batch of the evaluation (eval.batch)"):
                    raise UserError(told) from error
                raise

    return one_pass


def compile_evaluation(objective: Objective, layout: Layout) -> Callable[..., tuple[Sums, Tree]]:
    """A jitted (all parameters, carry, batch, seed) -> (metric sums, next carry): no dropout, keys from (seed, row index), and every
    schedule at its end (`rng.evaluation`)."""
    mesh = layout.mesh

    def evaluate_batch(params: Tree, carry: Tree, batch: Mapping[str, Array], seed: Array) -> tuple[Sums, Tree]:
        keys = rng.evaluation(seed, batch["index"])
        example = corrupt(objective, keys, batch, mesh)
        _, sums, new_carry = objective.terms(layout.whole(params), carry, example, keys, train=False)
        return sums, new_carry

    return jax.jit(evaluate_batch, out_shardings=(partition.replicated(mesh), partition.batch_sharding(mesh)))


def evaluate(
    objective: Objective,
    step: Callable[..., Any],
    seed: int,
    params: Tree,
    batches: Iterable[Batch],
    mesh: Mesh,
    stopping: Callable[[], bool] = never,
) -> dict[str, float]:
    """{name: number} over all batches, which have one shape: this process's rows of each. Padding rows weigh nothing. Beside each loss
    stands how many predictions it rests on (`metrics.predictions`). {} where `stopping`, asked before every batch, says so.

    step: what `compile_evaluation` returns; seed: the run's. The carry starts from zeros: an evaluation leaves no trace in the run. Sums
    are float32 a batch and float64 over batches, so the number depends on the batch size and the mesh only by float32 rounding. The
    sums of a batch are read while the next one is computed.
    """
    total: dict[str, Any] = {}
    pending: Sums = {}
    carry: Tree = None
    for batch in batches:
        if stopping():
            return {}
        carry = zero_carry(objective, len(batch["index"]) * jax.process_count(), mesh) if carry is None else carry
        rows = {name: batch[name] for name in {*objective.reads, "index"}}
        sums, carry = step(params, carry, partition.place(rows, mesh), np.int32(seed))
        total, pending = metrics.add(total, jax.device_get(pending)), sums
    total = metrics.add(total, jax.device_get(pending))
    return {**objective.summary(total), **metrics.predictions(total)}


def padded_batch(batch: int, mesh: Mesh) -> int:
    """`batch` rounded up to what the mesh divides: padding rows fill it, so any batch evaluates on any mesh."""
    parts = mesh.shape["data"] * mesh.shape["fsdp"]
    return -(-batch // parts) * parts
