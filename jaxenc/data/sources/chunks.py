"""The grid of chunks behind pairs: whole sentences of one document, up to a number of tokens."""

import contextlib
import io
from pathlib import Path

import numpy as np

from jaxenc.data.files import write_bytes
from jaxenc.data.store import Shards


def chunk_starts(shards: Shards, target: int) -> np.ndarray:
    """First sentence of each chunk, int64 [chunks + 1]; the last item is the number of sentences.

    A chunk takes sentences of its document while they fit `target` tokens; a longer sentence is a chunk of its own. Kept beside the
    shards as a memory-mapped file where that folder can be written, else made anew by each process.
    """
    path = shards.path / f"chunks-{shards.split}-{target}-{shards.manifest.fingerprint[:12]}.npy"
    with contextlib.suppress(OSError, ValueError):  # not there, or damaged: made again below
        cached = np.load(path, mmap_mode="r")
        if cached.dtype == np.int64 and len(cached) and cached[-1] == len(shards.sentences) - 1:
            return cached
    starts = _compute(shards, target)
    with contextlib.suppress(OSError):
        content = io.BytesIO()
        np.save(content, starts)
        write_bytes(Path(path), content.getvalue())
        return np.load(path, mmap_mode="r")
    return starts


def _compute(shards: Shards, target: int) -> np.ndarray:
    """One part of the store at a time, so that memory is that of a part and of the result."""
    out = []
    for p, (offsets, documents) in enumerate(zip(shards.sentences.parts[:-1], shards.documents.parts[:-1], strict=True)):
        total = len(shards.tokens.parts[p])
        bounds = np.append(offsets.astype(np.int64), total)
        document_end = np.repeat(np.append(documents[1:], len(offsets)).astype(np.int64), np.diff(np.append(documents, len(offsets))))
        fits = np.searchsorted(bounds, bounds[:-1] + target, "right") - 1
        after = np.minimum(np.maximum(fits, np.arange(1, len(bounds))), document_end).tolist()
        sentence, starts = 0, []
        while sentence < len(offsets):
            starts.append(sentence)
            sentence = after[sentence]
        out.append(np.array(starts, np.int64) + shards.sentences.starts[p])
    return np.concatenate([*out, [len(shards.sentences) - 1]]).astype(np.int64)
