"""What a data folder holds, in a few lines: counts, sizes in bytes, and some rows as a model reads them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jaxenc.data import manifest as manifests
from jaxenc.data import tokenizers
from jaxenc.data.manifest import Manifest, Split
from jaxenc.data.random import feistel
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary

ROWS, LENGTH = 3, 64


def describe(folder: str | Path) -> Iterator[str]:
    """The lines of `jaxenc data --inspect`: from the manifest, and ROWS rows of each split, the same ones every time. Raises UserError when
    `folder` is not a data folder."""
    facts = manifests.read(folder)
    yield f"{folder}: version {facts.version}, fingerprint {facts.fingerprint[:12]}"
    yield f"inputs: {len(facts.inputs)}, {sum(each.size for each in facts.inputs):,} bytes"
    tokenizer = facts.tokenizer
    yield f"tokenizer: {tokenizer.ids:,} ids, fingerprint {tokenizer.fingerprint[:12]}"
    for name, split in facts.splits.items():
        yield f"{name}: {counted(split, tokenizer)}, {len(split.shards):,} shard{'s' * (len(split.shards) != 1)}"
    yield _sizes(facts)
    config = DataConfig(path=str(folder), length=LENGTH, rows="packed" if tokenizer.frames else "text")
    for name, split in facts.splits.items():
        if split.tokens:
            yield from rows(config, name, ROWS)


def counted(split: Split, vocabulary: Vocabulary) -> str:
    """The counts of a split, as in `2 documents, 9 sentences, 70 tokens, 1.43% unknown`."""
    share = split.unknown / max(split.tokens, 1)
    counts = f"{split.documents:,} documents, {split.sentences:,} sentences, {split.tokens:,} tokens"
    return f"{counts}, {share:.2%} {vocabulary.unknown_name}"


def _sizes(facts: Manifest) -> str:
    """The bytes of the shards by suffix, and for each token."""
    sizes: dict[str, int] = {}
    for shard in (shard for split in facts.splits.values() for shard in split.shards):
        for name, size in facts.sizes(shard).items():
            suffix = name.rpartition(".")[2]
            sizes[suffix] = sizes.get(suffix, 0) + size
    tokens = sum(split.tokens for split in facts.splits.values())
    each = ", ".join(f"{suffix} {size:,}" for suffix, size in sizes.items())
    return f"bytes: {each}; {sum(sizes.values()) / max(tokens, 1):.2f} a token"


def rows(config: DataConfig, split: str, count: int) -> Iterator[str]:
    """A line for each of `count` random rows of a split, or for all rows if there are fewer: its number and its pieces (`spelled`)."""
    source, tokenizer = open_source(config, split, 0, evaluation=True), tokenizers.load(Path(config.folders[0]) / "tokenizer")
    chosen = feistel(len(source), 0, 0)(np.arange(min(count, len(source))))
    batch = source.rows(0, chosen)
    for index, tokens, segments in zip(chosen, batch["tokens"], batch["segments"], strict=True):
        padding = int((segments == 0).sum())
        text = spelled(tokenizer, tokens, segments) + (f" + {padding} padding" if padding else "")
        yield f"{split} row {index:,} of {len(source):,} ({config.rows}, {config.length}): {text}"


def spelled(tokenizer: Tokenizer, tokens: np.ndarray, segments: np.ndarray) -> str:
    """The readable pieces of one row (tokens, segments: i32 [length]) without padding, with ` | ` between its texts."""
    return " | ".join(" ".join(map(tokenizer.readable, tokens[segments == number].tolist())) for number in range(1, segments.max() + 1))
