"""Writes the token shards of a data folder from pieces; `store.py` reads them."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxenc.data import pieces
from jaxenc.data.facts import Facts
from jaxenc.data.manifest import File, Shard
from jaxenc.files import flush

SHARD_TOKENS = 1 << 26  # a shard ends with the first piece that reaches this
SUFFIXES = ("tokens", "words", "sentences", "documents")


@dataclasses.dataclass(frozen=True)
class Written:
    """A finished shard: its entries in the manifest, its files, and the facts of its pieces."""

    shard: Shard
    files: Mapping[str, File]
    facts: Facts


@dataclasses.dataclass
class NextShard:
    """Decides which pieces of one split form a shard. names: of the groups since the last shard; tokens: the number of theirs."""

    names: list[str] = dataclasses.field(default_factory=list)
    tokens: int = 0

    def add(self, name: str, tokens: int) -> list[str]:
        """Adds the next piece, in the order of the text. Returns the groups of the shard that it completes, [] if it completes none."""
        self.names.append(name)
        self.tokens += tokens
        return self.take() if self.tokens >= SHARD_TOKENS else []

    def take(self) -> list[str]:
        """The groups since the last shard, which become the next one."""
        taken, self.names, self.tokens = self.names, [], 0
        return taken


def write_shard(folder: Path, name: str, dtype: str, paths: Sequence[Path]) -> Written:
    """Writes the shard `name` of the pieces at `paths`; its bytes are on the disk when this returns. Without tokens it writes no files.

    A shard's files hold little-endian numbers: .tokens the ids; .words a bit a token, eight in a byte from its lowest bit on, 1 where
    the token is the first piece of its word, zeros after the last; .sentences (u32) the offset in the shard of each sentence's first
    token; .documents (u32) the number in the shard of each document's first sentence.
    Raises OSError, and UserError for a damaged piece.
    """
    targets = [folder / f"{name}.{suffix}" for suffix in SUFFIXES]
    digests = [hashlib.sha256() for _ in SUFFIXES]
    shard, facts, bits = Shard(name, 0, 0, 0, 0), Facts(), np.zeros(0, bool)  # bits: those of .words that do not fill a byte yet
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(target.open("wb")) for target in targets]

        def append(suffix: str, array: np.ndarray, dtype: str) -> None:
            content = array.astype(np.dtype(dtype).newbyteorder("<")).tobytes()
            files[SUFFIXES.index(suffix)].write(content)
            digests[SUFFIXES.index(suffix)].update(content)

        for path in paths:
            piece = pieces.load(path)
            bits = np.concatenate([bits, piece.words])
            whole = len(bits) // 8 * 8
            append("tokens", piece.tokens, dtype)
            append("words", np.packbits(bits[:whole], bitorder="little"), "uint8")
            append("sentences", shard.tokens + np.cumsum(piece.sentences) - piece.sentences, "uint32")
            append("documents", shard.sentences + np.cumsum(piece.documents) - piece.documents, "uint32")
            bits, facts = bits[whole:], facts + piece.facts
            highest = max(shard.highest, int(piece.tokens.max(initial=0)))
            shard = Shard(name, facts.documents, facts.sentences, facts.tokens, highest)
        append("words", np.packbits(bits, bitorder="little"), "uint8")
    if not shard.tokens:
        for target in targets:
            target.unlink()
        return Written(shard, {}, facts)
    for target in targets:
        flush(target)
    digests_by_name = zip(targets, digests, strict=True)
    return Written(shard, {target.name: File(target.stat().st_size, digest.hexdigest()) for target, digest in digests_by_name}, facts)
