"""The grid of chunks behind pairs: whole sentences of one document, up to a number of tokens."""

import numpy as np

from jaxenc.data.sources import grid
from jaxenc.data.store import Shards


def chunk_starts(shards: Shards, target: int) -> np.ndarray:
    """First sentence of each chunk, int64 [chunks + 1]; the last item is the number of sentences. Kept by `grid.kept`.

    A chunk takes sentences of its document while they fit `target` tokens; a longer sentence is a chunk of its own.
    """
    name = f"chunks-{shards.split}-{target}"
    return grid.kept(shards, name, len(shards.sentences) - 1, lambda: _compute(shards, target))


def _compute(shards: Shards, target: int) -> np.ndarray:
    """One part of the store at a time, so that memory is that of a part and of the result."""
    out = []
    for p, (offsets, documents) in enumerate(zip(shards.sentences.parts[:-1], shards.documents.parts[:-1], strict=True)):
        bounds = np.append(offsets.astype(np.int64), len(shards.tokens.parts[p]))
        document_end = np.repeat(np.append(documents[1:], len(offsets)).astype(np.int64), np.diff(np.append(documents, len(offsets))))
        fits = np.searchsorted(bounds, bounds[:-1] + target, "right") - 1
        after = np.minimum(np.maximum(fits, np.arange(1, len(bounds))), document_end)
        out.append(grid.chain(after, 0) + shards.sentences.starts[p])
    return np.concatenate([*out, [len(shards.sentences) - 1]]).astype(np.int64)
