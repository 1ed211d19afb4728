"""Opens the shards of a data folder as one flat array of tokens with tables of sentences and documents, memory-mapped."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxenc.data import characters, manifest, tokenizers
from jaxenc.data.manifest import Manifest
from jaxenc.data.ranges import ranges
from jaxenc.errors import UserError
from jaxenc.files import mapped, sha256, user_errors


class Concatenation:
    """Sorted or plain integer arrays laid end to end, read without copying them.

    Part p holds the items `starts[p]` to `starts[p+1]`, and `bases[p]` is added to each of its values.
    """

    def __init__(self, parts: Sequence[np.ndarray], bases: Sequence[int]):
        self.parts = list(parts)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
        self.bases = np.array(bases, np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, index: np.ndarray) -> np.ndarray:
        """Items at `index` (int64, any shape), int64."""
        if len(self.parts) == 1:
            return self.parts[0][index].astype(np.int64) + self.bases[0]
        owner = np.searchsorted(self.starts, index, "right") - 1
        out = np.empty(np.shape(index), np.int64)
        for p in np.unique(owner):
            here = owner == p
            out[here] = self.parts[p][index[here] - self.starts[p]].astype(np.int64) + self.bases[p]
        return out

    def runs(self, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The items of runs that each lie within one part, one run after another, int64. starts, sizes: int64 [n]."""
        if len(self.parts) == 1:
            return self.take(ranges(starts, sizes))
        owner = np.searchsorted(self.starts, starts, "right") - 1
        index = ranges(starts - self.starts[owner], sizes)
        owners, out = np.repeat(owner, sizes), np.empty(len(index), np.int64)
        for p in np.unique(owner):
            here = owners == p
            out[here] = self.parts[p][index[here]].astype(np.int64) + self.bases[p]
        return out

    def search(self, values: np.ndarray, side: str) -> np.ndarray:
        """Where `values` (int64 [n], any) would go, as numpy.searchsorted says; for sorted unsigned items and rising bases from 0.

        Each part is searched in its own dtype: another one would make NumPy convert the whole memory-mapped array.
        """
        owner = np.maximum(np.searchsorted(self.bases, values, "right") - 1, 0)
        out = np.empty(np.shape(values), np.int64)
        for p in np.unique(owner):
            here = owner == p
            local = np.clip(values[here] - self.bases[p], 0, np.iinfo(self.parts[p].dtype).max).astype(self.parts[p].dtype)
            out[here] = self.starts[p] + np.searchsorted(self.parts[p], local, side)
        return np.where(values < 0, 0, out)


@dataclasses.dataclass(frozen=True)
class Bits:
    """Flags laid end to end: eight in a byte, from its lowest bit on. starts: number of the first flag of each part, and the end."""

    bytes: Concatenation
    starts: np.ndarray

    def take(self, index: np.ndarray) -> np.ndarray:
        """Flags at `index` (int64, any shape), int32 of 0 and 1."""
        part = np.searchsorted(self.starts, index, "right") - 1
        local = index - self.starts[part]
        return (self.bytes.take(self.bytes.starts[part] + (local >> 3)) >> (local & 7) & 1).astype(np.int32)

    def window(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Flags [n, length] int32 of the runs that begin at `starts` (int64 [n]); beyond the end the last flag is repeated."""
        out = np.empty((len(starts), length), np.int32)
        part = np.searchsorted(self.starts, starts, "right") - 1
        inside = starts + length <= self.starts[part + 1]
        first = (starts - self.starts[part])[inside]
        held = (self.bytes.starts[part[inside]] + (first >> 3))[:, None] + np.arange(length // 8 + 2)
        flags = np.unpackbits(self.bytes.take(np.minimum(held, len(self.bytes) - 1)).astype(np.uint8), axis=1, bitorder="little")
        out[inside] = np.lib.stride_tricks.sliding_window_view(flags, length, axis=1)[np.arange(len(first)), first & 7]
        if not inside.all():
            out[~inside] = self.take(np.minimum(starts[~inside, None] + np.arange(length), self.starts[-1] - 1))
        return out


@dataclasses.dataclass(frozen=True)
class Shards:
    """One split of a data folder.

    tokens: ids of all documents, one after another. words: 1 where a token is the first piece of its word, always so for the first of a
    sentence; of no part where the manifest has no words. sentences: offset in `tokens` where each sentence starts, and the end.
    documents: number of the sentence where each document starts, and the end. Both tables are thus one longer than their count.
    characters: of each id its word's, uint16 [ids, 50], see data/characters.py; None where the tokenizer has none.
    """

    path: Path
    split: str
    manifest: Manifest
    tokens: Concatenation
    words: Bits
    sentences: Concatenation
    documents: Concatenation
    characters: np.ndarray | None = None

    def window(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Tokens [n, length] int32 of the runs that begin at `starts` (int64 [n]); beyond the end the last token is repeated."""
        out = np.empty((len(starts), length), np.int32)
        owner = np.searchsorted(self.tokens.starts, starts, "right") - 1
        inside = starts + length <= self.tokens.starts[owner + 1]
        for p in np.unique(owner[inside]):
            here = inside & (owner == p)
            runs = np.lib.stride_tricks.sliding_window_view(self.tokens.parts[p], length)
            out[here] = runs[starts[here] - self.tokens.starts[p]]
        if not inside.all():
            index = starts[~inside, None] + np.arange(length)
            out[~inside] = self.tokens.take(np.minimum(index, len(self.tokens) - 1))
        return out


def open_split(path: str | Path, split: str, verify: bool = False) -> Shards:
    """Opens `split` (train, held_out) of a data folder. Reads no tokens: sizes and the tokenizer are checked against the manifest; one
    that is a list of words, which may be long, and their characters by their checksums.

    verify: also compares every file's sha256. Raises UserError naming the file that is missing, truncated or changed, a tokenizer/
    folder that is not the one of the manifest, and ids outside the vocabulary.
    """
    folder = Path(path)
    facts = manifest.read(folder)
    if split not in facts.splits:
        raise ValueError(f"split {split!r}: there are {', '.join(facts.splits)}")
    _check_files(folder, facts, verify)
    if not facts.tokenizer.words and tokenizers.load(folder / "tokenizer").vocabulary != facts.tokenizer:
        raise UserError(f"{folder / manifest.NAME}: names another tokenizer than the one in {folder / 'tokenizer'}; build the data again")
    shards = facts.splits[split].shards
    for shard in shards:
        if shard.highest >= facts.tokenizer.ids:
            raise UserError(
                f"{folder / shard.name}.tokens: holds id {shard.highest}, and the vocabulary has {facts.tokenizer.ids}; "
                "build the data again"
            )
    tokens = _mapped(folder, [s.name for s in shards], "tokens", [s.tokens for s in shards], facts.dtype)
    firsts = _mapped(folder, [s.name for s in shards], "sentences", [s.sentences for s in shards], "uint32")
    documents = _mapped(folder, [s.name for s in shards], "documents", [s.documents for s in shards], "uint32")
    zero = np.zeros(1, np.uint32)
    flat = Concatenation(tokens, [0] * len(tokens))
    sentences = Concatenation([*firsts, zero], flat.starts)
    packed = _mapped(folder, [s.name for s in shards], "words", [-(-s.tokens // 8) for s in shards], "uint8") if facts.has_words else []
    words = Bits(Concatenation(packed, [0] * len(packed)), flat.starts)
    table = _characters(folder / characters.NAME, facts.tokenizer.ids) if facts.tokenizer.words else None
    return Shards(folder, split, facts, flat, words, sentences, Concatenation([*documents, zero], sentences.starts[:-1]), table)


def checkpoint_files(path: str | Path) -> dict[str, bytes]:
    """{name: content} of the files of a data folder that every checkpoint holds: its manifest and its tokenizer's files.

    A run reads them once, at its start, and needs no folder to save. Raises UserError for a file that cannot be read.
    """
    folder = Path(path)
    with user_errors(folder, "name a folder made by `jaxenc data`"):
        found = [folder / manifest.NAME, *sorted(file for file in (folder / "tokenizer").rglob("*") if file.is_file())]
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found}


def _check_files(folder: Path, facts: Manifest, verify: bool) -> None:
    for name, file in facts.files.items():
        path = folder / name
        # Path.is_file raises for a name that is too long (before Python 3.12), as one of a damaged manifest may be.
        if not os.path.isfile(path):
            raise UserError(f"{path}: missing; copy it or build the data again")
        size = path.stat().st_size
        if size != file.size:
            raise UserError(f"{path}: has {size} bytes, not the {file.size} of the manifest; copy it or build the data again")
        if (verify or (facts.tokenizer.words and name.startswith(("tokenizer/", characters.NAME)))) and sha256(path) != file.sha256:
            raise UserError(f"{path}: its content changed since the manifest was written; copy it or build the data again")


def _characters(path: Path, ids: int) -> np.ndarray:
    try:
        table = mapped(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}; build the data again") from error
    if table.dtype != np.uint16 or table.shape != (ids, characters.WIDTH):
        raise UserError(f"{path}: holds {table.dtype}{list(table.shape)}, and {ids} words take another; build the data again")
    return table


def _mapped(folder: Path, names: Sequence[str], suffix: str, counts: Sequence[int], dtype: str) -> list[np.ndarray]:
    kind = np.dtype(dtype).newbyteorder("<")
    return [np.memmap(folder / f"{name}.{suffix}", kind, "r", shape=(count,)) for name, count in zip(names, counts, strict=True)]
