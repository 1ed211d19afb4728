"""Held-out numbers: the training objective on every held-out row once, with the same masks every time."""

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
from jaxenc.data.batch import Batch, row_length
from jaxenc.errors import UserError, no_memory
from jaxenc.objectives.base import Objective, Sums
from jaxenc.sharding import partition
from jaxenc.training import compiling
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase
from jaxenc.training.read import reader
from jaxenc.training.state import Layout, zero_carry
from jaxenc.training.step import corrupt
from jaxenc.tree import Tree


def never() -> bool:
    """The default of `stopping`: False."""
    return False


def evaluation(job: Job, phase: Phase, objective: Objective, layout: Layout) -> Callable[..., Mapping[str, float]]:
    """A function (all parameters, `stopping`) -> the held-out numbers, which calls `evaluate` on all held-out batches, of every length. Its
    first call opens the data and compiles; it raises as `read_ahead`, and UserError where the device runs out of memory."""
    one_pass = held_out_batches(job, phase, objective)

    def step(params: Tree, carry: Tree, batch: Mapping[str, Array], seed: Array) -> tuple[Sums, Tree]:
        of_length = phase.of_length(row_length(batch))
        compiled = lambda: compile_evaluation(job.objective(of_length), layout)
        build = lambda: compiling.shown(job, "the evaluation", len(batch["index"]), of_length.length, compiled())
        return job.programs.once(("evaluation", phase, of_length.length), build)(params, carry, batch, seed)

    def assess(params: Tree, stopping: Callable[[], bool] = never) -> Mapping[str, float]:
        with one_pass() as batches:
            return evaluate(objective, step, job.run.train.seed, params, batches, job.mesh, stopping)

    return assess


def held_out_batches(job: Job, phase: Phase, objective: Objective) -> Callable[[], AbstractContextManager[Iterator[Batch]]]:
    """A function that returns a context manager for one pass over the held-out rows: this process's rows of each batch, prefetched by a
    thread.

    The first pass opens the data. Raises as `reader`; where the device runs out of memory in the block, UserError says what to lower.
    """
    rows = padded_batch(job.run.eval.batch, job.mesh)
    opened = functools.cache(lambda: reader(job, "held_out", phase, rows, objective))

    @contextlib.contextmanager
    def one_pass() -> Iterator[Iterator[Batch]]:
        batch_at, count = opened()
        ahead = pipeline.prefetch(batch_at, range(count))
        with contextlib.closing(ahead) as batches, job.bars.shown("evaluation", count, "batches") as bar:
            try:
                yield bar.counting(batches)
            except jax.errors.JaxRuntimeError as error:
                if what := no_memory(error):
                    raise UserError(what, fix="lower the batch of the evaluation (eval.batch)") from error
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
    """{name: number} over all batches, each this process's rows, of as many rows. Padding rows have weight 0. Each loss comes with the
    number of its predictions (`metrics.predictions`). Returns {} where `stopping`, called before every batch, returns True.

    step: the function from `compile_evaluation`; seed: the run's. The carry starts from zeros and is dropped at the end. Sums are float32
    within a batch and float64 over batches, so the result depends on batch size and mesh only by float32 rounding. The sums of a batch are
    read while the next one is computed.
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
    """`batch` rounded up to a multiple of the mesh's row shards; padding rows fill it, so any batch size works on any mesh."""
    parts = mesh.shape["data"] * mesh.shape["fsdp"]
    return -(-batch // parts) * parts
