"""Documents as texts that fit a row: a document, or the parts of a long one."""

from collections.abc import Iterator

import numpy as np

from jaxenc.data.ranges import numbers
from jaxenc.data.sources import grid
from jaxenc.data.store import Shards

# Documents of one window: enough to fill packed rows, few enough that what is made of them takes most of the memory.
WINDOW = 1 << 16


def windows(shards: Shards, width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(offset, tokens) of the texts of WINDOW documents at a time, in the order of the data: int64 [texts] both, as `cut` makes them."""
    documents = grid.document_starts(shards)
    for first in range(0, len(documents) - 1, WINDOW):
        yield cut(documents[first : first + WINDOW + 1], width)


def cut(bounds: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(offset, tokens) of the texts of neighbouring documents: `width` tokens each but the last of a document. bounds: int64
    [documents + 1], the offset of each document and of the end."""
    starts, ends = bounds[:-1], bounds[1:]
    counts = -(-(ends - starts) // width)
    offsets = np.repeat(starts, counts) + numbers(counts) * width
    return offsets, np.minimum(width, np.repeat(ends, counts) - offsets)
