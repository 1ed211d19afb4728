"""What a data folder holds, in a few lines: its facts, its sizes and rows of it as a model reads them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jaxenc.data import manifest as manifests
from jaxenc.data import tokenizers
from jaxenc.data.manifest import Manifest
from jaxenc.data.random import feistel
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.tokenizers.tokenizer import Tokenizer

ROWS, LENGTH = 3, 64


def describe(folder: str | Path) -> Iterator[str]:
    """The lines of `jaxenc data --inspect`. Reads the manifest and ROWS rows of each split, the same every time. Raises UserError for what
    is no data folder."""
    facts = manifests.read(folder)
    yield f"{folder}: version {facts.version}, fingerprint {facts.fingerprint[:12]}"
    yield f"inputs: {len(facts.inputs)}, {sum(each.size for each in facts.inputs):,} bytes"
    tokenizer = facts.tokenizer
    yield f"tokenizer: {tokenizer.ids:,} ids, fingerprint {tokenizer.fingerprint[:12]}"
    for name, split in facts.splits.items():
        share = split.unknown / max(split.tokens, 1)
        parts = f"{split.documents:,} documents, {split.sentences:,} sentences, {split.tokens:,} tokens, {share:.2%} unknown"
        yield f"{name}: {parts}, {len(split.shards):,} shard{'s' * (len(split.shards) != 1)}"
    yield _sizes(facts)
    config = DataConfig(path=str(folder), length=LENGTH, rows="packed" if tokenizer.frames else "text")
    for name, split in facts.splits.items():
        if split.tokens:
            yield from rows(config, name, ROWS)


def _sizes(facts: Manifest) -> str:
    """The bytes of the files by suffix, and of the shards for each token."""
    sizes: dict[str, int] = {}
    for shard in (shard for split in facts.splits.values() for shard in split.shards):
        for name, size in facts.sizes(shard).items():
            suffix = name.rpartition(".")[2]
            sizes[suffix] = sizes.get(suffix, 0) + size
    tokens = sum(split.tokens for split in facts.splits.values())
    each = ", ".join(f"{suffix} {size:,}" for suffix, size in sizes.items())
    return f"bytes: {each}; {sum(sizes.values()) / max(tokens, 1):.2f} a token"


def rows(config: DataConfig, split: str, count: int) -> Iterator[str]:
    """`count` rows of the first epoch of a split, or all where there are fewer, as the model reads them: a line each, with the pieces by
    name.

    Texts of a packed row are apart by ` | `, and padding is counted at the end. `##` or another mark of the tokenizer stays on its pieces.
    """
    source, tokenizer = open_source(config, split, 0, True), tokenizers.load(Path(config.folders[0]) / "tokenizer")
    chosen = feistel(len(source), 0, 0)(np.arange(min(count, len(source))))
    batch = source.rows(0, chosen)
    for index, tokens, segments in zip(chosen, batch["tokens"], batch["segments"], strict=True):
        yield f"{split} row {index:,} of {len(source):,} ({config.rows}, {config.length}): {_spelled(tokenizer, tokens, segments)}"


def _spelled(tokenizer: Tokenizer, tokens: np.ndarray, segments: np.ndarray) -> str:
    texts = [" ".join(map(tokenizer.readable, tokens[segments == number].tolist())) for number in range(1, segments.max() + 1)]
    padding = int((segments == 0).sum())
    return " | ".join(texts) + (f" + {padding} padding" if padding else "")
