"""Made-up corpora as shards in memory: so cheap that a property is tried on many."""

from pathlib import Path

import numpy as np

from jaxenc.data.manifest import VERSION, Manifest
from jaxenc.data.store import Bits, Concatenation, Shards
from jaxenc.data.vocabulary import Vocabulary

PAD, CLS, SEP = 0, 2, 3
VOCABULARY = Vocabulary(100, PAD, 1, CLS, SEP, 99, (0, 1, 2, 3, 99), "")
Parts = list[list[list[list[int]]]]


def corpus(rng: np.random.Generator, parts: int, documents: int, sentences: int, longest: int) -> Parts:
    """parts -> documents -> sentences -> ids. One sentence in ten is up to eight times longer."""
    size = lambda: int(rng.integers(1, longest + 1)) * (1 if rng.random() < 0.9 else int(rng.integers(2, 9)))
    sentence = lambda: rng.integers(4, 99, size()).tolist()
    document = lambda: [sentence() for _ in range(rng.integers(1, sentences + 1))]
    return [[document() for _ in range(rng.integers(1, documents + 1))] for _ in range(parts)]


def store(parts: Parts, folder: Path, vocabulary: Vocabulary = VOCABULARY) -> Shards:
    """The shards of `parts`, one a part, as store.open_split lays them out. A word starts where the id divides by 3."""
    flat = lambda lists: [item for items in lists for item in items]
    starts = lambda items: np.cumsum([0, *map(len, items)])[:-1].astype(np.uint32)
    sentences = [flat(part) for part in parts]
    tokens = Concatenation([np.array(flat(s), np.uint16) for s in sentences], [0] * len(parts))
    words = [np.packbits(part % 3 == 0, bitorder="little") for part in tokens.parts]
    zero = np.zeros(1, np.uint32)
    firsts = Concatenation([*map(starts, sentences), zero], tokens.starts)
    documents = Concatenation([*map(starts, parts), zero], firsts.starts[:-1])
    facts = Manifest(VERSION, (), 0.0, vocabulary, {}, "uint16", {}, {})
    bits = Bits(Concatenation(words, [0] * len(parts)), tokens.starts)
    return Shards(folder, "train", facts, tokens, bits, firsts, documents)
