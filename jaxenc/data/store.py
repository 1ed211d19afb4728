"""Opens the shards of a data folder as one flat array of tokens with tables of sentences and documents, memory-mapped."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.data import characters, manifest, staging, tokenizers
from jaxenc.data.manifest import Manifest
from jaxenc.errors import UserError
from jaxenc.files import mapped, sha256, user_errors


class Concatenation:
    """Sorted or plain integer arrays laid end to end, read without copying them.

    Part p holds the items `starts[p]` to `starts[p+1]`, and `bases[p]` is added to each of its values.
    """

    def __init__(self, parts: Sequence[np.ndarray], bases: Sequence[int]):
        # Plain views of the mapped files: an np.memmap costs microseconds at every index.
        self.parts = [np.asarray(part) for part in parts]
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
        self.bases = np.array(bases, np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, index: np.ndarray) -> np.ndarray:
        """Items at `index` (int64, any shape), int64."""
        if len(self.parts) == 1:
            return self.parts[0][index].astype(np.int64) + self.bases[0]
        owner = np.searchsorted(self.starts, index, "right") - 1
        local = index - self.starts[owner]
        if _scattered(owner):
            items = (self.parts[p][i] for p, i in zip(owner.flat, local.flat, strict=True))
            return np.fromiter(items, np.int64, owner.size).reshape(owner.shape) + self.bases[owner]
        out = np.empty(np.shape(index), np.int64)
        for p, here in _groups(owner):
            out[here] = self.parts[p][local[here]].astype(np.int64) + self.bases[p]
        return out

    def window(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Runs [n, length] of a concatenation whose bases are 0, in the dtype of its parts: the items from starts[i] on (int64 [n], any).
        Items before the first one and after the last one are unspecified."""
        owner = np.clip(np.searchsorted(self.starts, starts, "right") - 1, 0, len(self.parts) - 1)
        inside = (starts >= 0) & (starts + length <= self.starts[owner + 1])
        out = np.empty((len(starts), length), self.parts[0].dtype)
        owner, local = np.where(inside, owner, -1), starts - self.starts[owner]
        if _scattered(owner):
            for row, p, first, last in zip(out, owner.tolist(), local.tolist(), (local + length).tolist(), strict=True):
                if p >= 0:
                    row[:] = self.parts[p][first:last]
        else:
            for p, here in _groups(owner):
                if p >= 0:
                    part = self.parts[p]
                    runs = np.ndarray((len(part) - length + 1, length), part.dtype, part, strides=2 * part.strides)
                    out[here] = runs[local[here]]
        if not inside.all():
            index = starts[~inside, None] + np.arange(length)
            out[~inside] = self.take(np.clip(index, 0, len(self) - 1))
        return out

    def search(self, values: np.ndarray, side: str) -> np.ndarray:
        """Where `values` (int64 [n], any) would go, as numpy.searchsorted says; for sorted unsigned items and rising bases from 0.

        Each part is searched in its own dtype: another one would make NumPy convert the whole memory-mapped array.
        """
        owner, dtype = np.maximum(np.searchsorted(self.bases, values, "right") - 1, 0), self.parts[0].dtype
        local = np.clip(values - self.bases[owner], 0, np.iinfo(dtype).max).astype(dtype)
        if _scattered(owner):
            found = (self.parts[p].searchsorted(value, side) for p, value in zip(owner, local, strict=True))
            return np.where(values < 0, 0, np.fromiter(found, np.int64, len(owner)) + self.starts[owner])
        out = np.empty(np.shape(values), np.int64)
        for p, here in _groups(owner):
            out[here] = self.starts[p] + np.searchsorted(self.parts[p], local[here], side)
        return np.where(values < 0, 0, out)


def _scattered(owner: np.ndarray) -> bool:
    """Whether the numbers in `owner` (int64, any shape) differ so much that one at a time is faster than a group at a time."""
    return bool(owner.size) and 4 * len(np.unique(owner)) > min(owner.size, 4096)


def _groups(owner: np.ndarray) -> Iterator[tuple[int, Any]]:
    """(number, the index of its places) of each number in `owner` (int64, any shape): mostly one, which has them all."""
    if owner.size and (owner == owner.flat[0]).all():
        yield int(owner.flat[0]), ...
    else:
        for number in np.unique(owner).tolist():
            yield number, owner == number


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
        """Runs [n, length] as uint8, as of `Concatenation.window`."""
        part = np.clip(np.searchsorted(self.starts, starts, "right") - 1, 0, len(self.starts) - 2)
        first = starts - self.starts[part]
        held = self.bytes.window(self.bytes.starts[part] + (first >> 3), length // 8 + 2)
        flags = np.unpackbits(held, axis=1, bitorder="little")
        runs = np.ndarray((len(first), flags.shape[1] - length + 1, length), np.uint8, flags, strides=(flags.shape[1], 1, 1))
        out = runs[np.arange(len(first)), first & 7]
        outside = (starts < 0) | (starts + length > self.starts[part + 1])
        if outside.any():
            index = starts[outside, None] + np.arange(length)
            out[outside] = self.take(np.clip(index, 0, self.starts[-1] - 1))
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


def open_split(path: str | Path, split: str, verify: bool = False) -> Shards:
    """Opens `split` (train, held_out) of a data folder, or of one at a URL, which is copied to this machine first (`staging`).

    Reads no tokens: sizes and the tokenizer are checked against the manifest; one that is a list of words, which may be long, and their
    characters by their checksums.

    verify: also compares every file's sha256. Raises UserError naming the file that is missing, truncated or changed, a tokenizer/
    folder that is not the one of the manifest, and ids outside the vocabulary.
    """
    folder = staging.staged(path)
    facts = manifest.read(folder)
    if split not in facts.splits:
        raise ValueError(f"split {split!r}: there are {', '.join(facts.splits)}")
    _check_files(folder, facts, verify)
    if not facts.tokenizer.words and tokenizers.load(folder / "tokenizer").vocabulary != facts.tokenizer:
        raise UserError(f"names another tokenizer than the one in {folder / 'tokenizer'}", folder / manifest.NAME, "build the data again")
    shards = facts.splits[split].shards
    for shard in shards:
        if shard.highest >= facts.tokenizer.ids:
            raise UserError(
                f"holds id {shard.highest}, and the vocabulary has {facts.tokenizer.ids}",
                f"{folder / shard.name}.tokens",
                "build the data again",
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
    folder = staging.staged(path)
    with user_errors(folder, "name a folder made by `jaxenc data`"):
        found = [folder / manifest.NAME, *sorted(file for file in (folder / "tokenizer").rglob("*") if file.is_file())]
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found}


def _check_files(folder: Path, facts: Manifest, verify: bool) -> None:
    for name, file in facts.files.items():
        path = folder / name
        # Path.is_file raises for a name that is too long (before Python 3.12), as one of a damaged manifest may be.
        if not os.path.isfile(path):
            raise UserError("missing", path, "copy it or build the data again")
        size = path.stat().st_size
        if size != file.size:
            raise UserError(f"has {size} bytes, not the {file.size} of the manifest", path, "copy it or build the data again")
        if (verify or (facts.tokenizer.words and name.startswith(("tokenizer/", characters.NAME)))) and sha256(path) != file.sha256:
            raise UserError("its content changed since the manifest was written", path, "copy it or build the data again")


def _characters(path: Path, ids: int) -> np.ndarray:
    try:
        table = mapped(path)
    except (OSError, ValueError) as error:
        raise UserError(error, path, "build the data again") from error
    if table.dtype != np.uint16 or table.shape != (ids, characters.WIDTH):
        raise UserError(f"holds {table.dtype}{list(table.shape)}, and {ids} words take another", path, "build the data again")
    return table


def _mapped(folder: Path, names: Sequence[str], suffix: str, counts: Sequence[int], dtype: str) -> list[np.ndarray]:
    kind = np.dtype(dtype).newbyteorder("<")
    return [np.memmap(folder / f"{name}.{suffix}", kind, "r", shape=(count,)) for name, count in zip(names, counts, strict=True)]
