"""Which rows of the global batch a process reads, and which process writes."""

import jax

from jaxenc.errors import UserError


def process_slots(batch: int, count: int, index: int) -> slice:
    """The slots of a global batch of `batch` rows that process `index` of `count` reads.

    The processes' slices are contiguous, disjoint, of one size, and cover the batch in the order of their index. Raises UserError
    when `count` does not divide `batch`, ValueError for an index outside [0, count).
    """
    if not 0 <= index < count:
        raise ValueError(f"process {index} of {count}")
    if batch % count:
        raise UserError(f"train.batch is {batch}, which {count} processes cannot share: set it to a multiple of {count}")
    rows = batch // count
    return slice(index * rows, (index + 1) * rows)


def is_primary() -> bool:
    """Whether this process writes what is written once: logs, configuration, reports."""
    return jax.process_index() == 0
