"""Hidden states of many rows: rows of similar length form a batch, and results are copied while the device computes the next one."""

from collections import deque
from collections.abc import Callable, Iterator

import jax
import numpy as np
from jax import Array

from jaxenc.data.batch import Batch
from jaxenc.sharding.mesh import platform
from jaxenc.tree import Tree

# Rows at a time, which bounds the memory of activations. A CPU is faster with few: 384 sentences took 3.8 s 8 at a time, 6.3 by 32.
ROWS, ROWS_ON_CPU = 32, 8
# Batches that are queued on the device while the host copies earlier results.
AHEAD = 2


def rows_at_once(params: Tree) -> int:
    """Rows of one call of a model, for the device that holds its parameters."""
    held = next((leaf for leaf in jax.tree.leaves(params) if isinstance(leaf, Array)), None)
    devices = jax.devices() if held is None else list(held.devices())
    return ROWS_ON_CPU if platform(devices[0]) == "cpu" else ROWS


def by_length(real: np.ndarray, at_once: int) -> Iterator[tuple[np.ndarray, int]]:
    """(numbers of rows that are computed together, the number of places that hold their tokens), shorter rows first. real: bool [batch,
    length], False at padding."""
    lengths = np.max(np.where(real, np.arange(1, real.shape[1] + 1), 0), axis=1, initial=1)
    order = np.argsort(lengths, kind="stable")
    for first in range(0, len(order), at_once):
        chosen = order[first : first + at_once]
        yield chosen, int(lengths[chosen[-1]])


def hidden_states(start: Callable[[Batch], Array], rows: Batch, states: int, width: int, at_once: int) -> np.ndarray:
    """float32 [states, batch, length, width] of `rows`, 0 at padding.

    rows: i32 [batch, length] fields. start: queues the states of some rows, [states, >= n, >= length, width], which it may pad at the end
    of both. at_once: rows of one call.
    """
    real = rows["segments"] != 0
    hidden = np.zeros((states, *real.shape, width), np.float32)
    started: deque[tuple[np.ndarray, int, Array]] = deque()

    def write(chosen: np.ndarray, length: int, computed: Array) -> None:
        found = np.asarray(computed)
        for place, row in enumerate(chosen):
            np.copyto(hidden[:, row, :length], found[:, place, :length], where=real[row, :length, None])

    for chosen, length in by_length(real, at_once):
        started.append((chosen, length, start({field: array[chosen, :length] for field, array in rows.items()})))
        if len(started) > AHEAD:
            write(*started.popleft())
    for one in started:
        write(*one)
    return hidden
