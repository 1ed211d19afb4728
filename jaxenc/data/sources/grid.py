"""Where rows start: one array an epoch's worth of rows long, made once and kept beside the shards."""

import contextlib
import io
from collections.abc import Callable

import numpy as np

from jaxenc.data.files import mapped, write_bytes
from jaxenc.data.store import Shards


def kept(shards: Shards, name: str, last: int, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array make() (int64 [rows + 1], its last item `last`) as a memory-mapped file beside the shards.

    name: tells the grids of one split apart. Made by the first process that asks for it; where the folder cannot be written each
    process makes its own. A file that is damaged is made again.
    """
    path = shards.path / f"{name}-{shards.manifest.fingerprint[:12]}.npy"
    with contextlib.suppress(OSError, ValueError):  # not there, or damaged: made again below
        cached = mapped(path)
        if cached.dtype == np.int64 and cached.ndim == 1 and len(cached) and cached[-1] == last:
            return cached
    grid = make()
    with contextlib.suppress(OSError):
        content = io.BytesIO()
        np.save(content, grid)
        write_bytes(path, content.getvalue())
        return np.load(path, mmap_mode="r")
    return grid


def chain(after: np.ndarray, first: int) -> np.ndarray:
    """first, after[first], after[after[first]] ... while below len(after). after: int64 [n], after[i] > i."""
    items, out = after.tolist(), []
    while first < len(items):
        out.append(first)
        first = items[first]
    return np.array(out, np.int64)
