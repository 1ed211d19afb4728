"""Where rows start: one array an epoch's worth of rows long, made once and kept beside the shards."""

import contextlib
import hashlib
import io
from collections.abc import Callable

import numpy as np

from jaxenc.data.store import Shards
from jaxenc.files import mapped, write_bytes

SUM = 4  # int64s at the end of a grid's file: the sha256 of the grid


def kept(shards: Shards, name: str, last: int, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array make() (int64 [rows + 1], its last item `last`) as a memory-mapped file beside the shards.

    name: tells the grids of one split apart. Made by the first process that asks for it; where the folder cannot be written each
    process makes its own. A file in which any number has changed is made again.
    """
    path = shards.path / f"{name}-{shards.manifest.fingerprint[:12]}.npy"
    with contextlib.suppress(OSError, ValueError):  # missing or damaged: made again below
        cached = mapped(path)
        if cached.dtype == np.int64 and cached.ndim == 1 and len(cached) > SUM:
            grid = cached[:-SUM]
            if grid[-1] == last and np.array_equal(_sum(grid), cached[-SUM:]):
                return grid
    grid = make()
    with contextlib.suppress(OSError):
        content = io.BytesIO()
        np.save(content, np.concatenate([grid, _sum(grid)]))
        write_bytes(path, content.getvalue())
        return mapped(path)[:-SUM]
    return grid


def document_starts(shards: Shards) -> np.ndarray:
    """The offset of the first token of each document, int64 [documents + 1]; the last item is the number of tokens. Kept by `kept`."""
    make = lambda: shards.sentences.take(shards.documents.take(np.arange(len(shards.documents))))
    return kept(shards, f"documents-{shards.split}", len(shards.tokens), make)


def _sum(grid: np.ndarray) -> np.ndarray:
    """int64 [SUM]: the sha256 of a grid."""
    return np.frombuffer(hashlib.sha256(np.ascontiguousarray(grid)).digest(), np.int64)


def chain(after: np.ndarray, first: int) -> np.ndarray:
    """first, after[first], after[after[first]] ... while below len(after). after: int64 [n], after[i] > i."""
    items, out = after.tolist(), []
    while first < len(items):
        out.append(first)
        first = items[first]
    return np.array(out, np.int64)
