"""What the text of a run says of its losses: what counting predicts, how much text there is, and how much of it is there twice."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxenc.data import baselines
from jaxenc.data.sources import DataConfig
from jaxenc.data.store import Shards, open_split
from jaxenc.errors import UserError
from jaxenc.storage import is_url

MOST_TOKENS = 5_000_000  # of each split whose sentences are compared: 0.3 GB and seconds
SHORTEST = 8  # tokens of a sentence that is compared: shorter ones repeat in any text
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, for mixing bits (Knuth, The Art of Computer Programming 3, 6.4)


@dataclasses.dataclass(frozen=True)
class Text:
    """counts: {count baseline: nats a token} (`data.baselines`), {} where they are unknown; tokens: of the training split, 0 = unknown.
    repeated: share of the training tokens in sentences that occurred before, copied: in whole documents that did. known: share of the
    held-out tokens in sentences of the training split. missing: why nothing is known, '' where something is."""

    counts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    tokens: int = 0
    repeated: float = 0.0
    known: float = 0.0
    copied: float = 0.0
    missing: str = ""


def read_here(data: DataConfig) -> Text:
    """As `read`, but no data folder is downloaded: one at a URL is a reason, too."""
    return Text(missing=f"data.path is {data.path}, which is not read here") if is_url(data.path) else read(data)


def read(data: DataConfig) -> Text:
    """The facts of a run's data folder; one at a URL is copied to this machine. Reads up to 20 million tokens of it. A folder that is gone,
    or one of several, is a reason and no error."""
    if data.mixture:
        return Text(missing=f"data.mixture names {len(data.mixture)} folders, and counts are of one")
    if not data.path:
        return Text(missing="the run has no data folder")
    counted = baselines.sentence_baselines if data.rows == "sentences" else baselines.count_baselines
    try:
        counts = counted(data.path)
        train, held_out = (open_split(data.path, split) for split in ("train", "held_out"))
    except UserError as error:
        return Text(missing=str(error))
    ours, lengths = _sentences(train)
    theirs, held_lengths = _sentences(held_out)
    known = held_lengths[np.isin(theirs, ours)].sum()
    repeated, copied = _again(ours, lengths), _again(*_documents(train))
    return Text(counts, len(train.tokens), repeated, float(known / max(held_lengths.sum(), 1)), copied)


def _again(hashes: np.ndarray, lengths: np.ndarray) -> float:
    """The share of the tokens in parts of a text whose hash came before."""
    _, first = np.unique(hashes, return_index=True)
    return float(1 - lengths[first].sum() / max(lengths.sum(), 1)) if len(lengths) else 0.0


def _sentences(shards: Shards) -> tuple[np.ndarray, np.ndarray]:
    """(a hash uint64, the number of tokens) of each sentence of SHORTEST tokens or more, from the front of a split."""
    hashes, lengths = _hashed(shards, _borders(shards))
    return hashes[lengths >= SHORTEST], lengths[lengths >= SHORTEST]


def _documents(shards: Shards) -> tuple[np.ndarray, np.ndarray]:
    """As `_sentences`, of each document of any length."""
    borders = _borders(shards)
    count = int(shards.documents.search(np.array([len(borders) - 1]), "right")[0])
    return _hashed(shards, borders[shards.documents.take(np.arange(count))])


def _borders(shards: Shards) -> np.ndarray:
    """The offsets where the sentences at the front of a split start, and the end of the last one."""
    within = int(shards.sentences.search(np.array([MOST_TOKENS]), "right")[0])
    return shards.sentences.take(np.arange(max(min(within, len(shards.sentences)), 2)))


def _hashed(shards: Shards, borders: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a hash uint64, the number of tokens) of each part between two borders that is not empty."""
    borders = borders[np.append(True, np.diff(borders) > 0)]
    lengths = np.diff(borders)
    tokens = shards.tokens.take(np.arange(borders[-1])).astype(np.uint64)
    place = np.arange(len(tokens), dtype=np.uint64) - np.repeat(borders[:-1], lengths).astype(np.uint64)
    mixed = (tokens + np.uint64(1)) * FACTOR + place * (FACTOR >> np.uint64(1) | np.uint64(1))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * FACTOR
    return np.add.reduceat(mixed ^ (mixed >> np.uint64(32)), borders[:-1]) if len(lengths) else mixed[:0], lengths
