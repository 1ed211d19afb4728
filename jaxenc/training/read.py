"""This process's rows of the batches of a run, checked against what the objective takes."""

from collections.abc import Callable, Generator

import jax

from jaxenc.data import pipeline
from jaxenc.data.batch import Batch, check_fields, check_ranges
from jaxenc.data.store import open_split
from jaxenc.errors import UserError
from jaxenc.objectives.base import Objective
from jaxenc.sharding import partition
from jaxenc.training.job import Job
from jaxenc.training.phases import Phase


def reader(job: Job, split: str, phase: Phase, rows: int, objective: Objective) -> tuple[Callable[[int], Batch], int]:
    """(this process's rows of batch number n of a split, batches of one pass over it), with fields and values checked.

    A value that no model takes may come from a file that changed under the run, so the files are then compared with their checksums, and
    the UserError names the one that has changed.
    """
    batches = job.batches(split, phase, rows)
    check_fields(batches.fields, objective.reads, objective.fields)
    slots = partition.process_slots(rows, jax.process_count(), jax.process_index())

    def batch_at(number: int) -> Batch:
        batch = batches.batch_at(number, slots)
        try:
            check_ranges(batch, objective.reads, objective.fields)
        except UserError:
            for folder in job.run.data.folders:
                open_split(folder, split, verify=True)
            raise
        return batch

    return batch_at, len(batches)


def read_ahead(job: Job, phase: Phase, objective: Objective, step: int) -> Generator[Batch]:
    """This process's rows of every batch of the phase from `step` on, read by a thread while the device computes.

    Raises ValueError when the source lacks a field that the objective reads, UserError for a value outside the model's tables.
    """
    batch_at, _ = reader(job, "train", phase, phase.batch, objective)
    return pipeline.prefetch(lambda step: batch_at(step - phase.start), range(step, phase.end))
