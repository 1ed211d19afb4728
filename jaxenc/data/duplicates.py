"""Drops duplicate documents: the first of equal or nearly equal ones stays, for any number of workers.

Any process computes keys of documents; an `Index` then compares them in the order of the text. Its memory grows with the documents that
stay: about 0.11 KB each for exact duplicates and about 5 KB each for near ones (measured, at the defaults).
"""

import dataclasses
import hashlib
import unicodedata
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.data.groups import Group
from jaxenc.errors import UserError
from jaxenc.files import npz, written

KINDS = ("", "exact", "near")
# Lowest and highest value of each number. More hashes need more memory than a machine has, for an error that is below 0.01 already.
LIMITS = {"words": (1, 1000), "permutations": (16, 4096), "similarity": (0.1, 1)}
SCHEME = "affine32"  # of datasketch: its default may change, and the documents that stay must not
WEIGHTS = (0.1, 0.9)  # datasketch's, of false positives and false negatives: a candidate is compared afterwards, a missed one is not
BLOCK = 2048  # runs of words that are hashed at once


@dataclasses.dataclass(frozen=True)
class Duplicates:
    """Which documents count as duplicates.

    kind: '' keeps all; exact: texts are equal in NFKC without regard to case and white space; near: their sets of runs of `words` words,
    normalised alike, are so similar that the estimated Jaccard index is `similarity` or more.
    permutations: hashes of a document that the estimate rests on; its standard error is at most 0.5 / sqrt(permutations).
    Defaults: 5 words, 128 permutations and 0.8 (Lee et al. 2022, arXiv:2107.06499, uses 5-grams and an index of 0.8).
    """

    kind: str = ""
    words: int = 5
    permutations: int = 128
    similarity: float = 0.8

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError("no such kind of duplicates", f"--drop-duplicates {self.kind}", "use exact or near")
        for name, (low, high) in LIMITS.items():
            if not low <= getattr(self, name) <= high:
                raise UserError("out of range", f"--duplicate-{name} {getattr(self, name)}", f"use {low} to {high:,}")

    @property
    def asked(self) -> dict[str, Any]:
        """The fields that the manifest records; {} if all documents are kept."""
        return {} if not self.kind else {"kind": "exact"} if self.kind == "exact" else dataclasses.asdict(self)


def keys(group: Group, rule: Duplicates) -> np.ndarray:
    """The keys of the documents of a group: uint8 [documents, 16] for exact, uint32 [documents, permutations] for near.

    Raises UserError where datasketch is needed and not installed.
    """
    texts = [_normalised(lines) for lines in group.documents]
    if rule.kind == "exact":
        digests = (hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest() for words in texts)
        return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 16)
    sketch = _sketch(rule)
    return np.stack([_signature(words, rule, sketch) for words in texts])


def _sketch(rule: Duplicates) -> Any:
    """An empty MinHash; drawing its permutations takes longer than most documents."""
    return _datasketch().MinHash(rule.permutations, hashfunc=_hash, scheme=SCHEME)


def _normalised(lines: Sequence[str]) -> list[str]:
    return unicodedata.normalize("NFKC", " ".join(lines)).casefold().split()


def _signature(words: Sequence[str], rule: Duplicates, sketch: Any) -> np.ndarray:
    """uint32 [permutations]: the smallest hash of the document's runs of words under each permutation. A shorter document is one run."""
    count = max(len(words) - rule.words + 1, 1)
    sketch.clear()
    for start in range(0, count, BLOCK):
        sketch.update_batch([" ".join(words[i : i + rule.words]).encode() for i in range(start, min(start + BLOCK, count))])
    return sketch.hashvalues.astype(np.uint32)


def _hash(run: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(run, digest_size=4).digest(), "little")


def _index(rule: Duplicates) -> Any:
    """datasketch's index of candidates."""
    index = _datasketch().MinHashLSH
    try:
        return index(rule.similarity, rule.permutations, WEIGHTS)
    except ValueError:
        # For a similarity near 1 it wants a single band and refuses it.
        return index(num_perm=rule.permutations, params=(2, rule.permutations // 2))


def _datasketch() -> Any:
    try:
        import datasketch
    except ImportError as error:
        raise UserError("needs datasketch", "--drop-duplicates near", 'install it with `pip install "jaxenc[data]"`') from error
    return datasketch


class Index:
    """Owns the keys of the documents that stay."""

    def __init__(self, rule: Duplicates):
        self._rule = rule
        self._exact: set[bytes] = set()
        self._signatures: list[np.ndarray] = []
        self._near = _index(rule) if rule.kind == "near" else None
        self._sketch = _sketch(rule) if rule.kind == "near" else None

    def dropped(self, keys: np.ndarray) -> tuple[int, ...]:
        """The numbers of the next group's documents that are duplicates. Groups come in the order of the text; keys: as of `keys`."""
        found = self._is_near if self._near is not None else self._is_equal
        return tuple(number for number, key in enumerate(keys) if found(key))

    def _is_equal(self, key: np.ndarray) -> bool:
        before = len(self._exact)
        self._exact.add(key.tobytes())
        return len(self._exact) == before

    def _is_near(self, key: np.ndarray) -> bool:
        self._sketch.hashvalues = key
        if any((self._signatures[number] == key).mean() >= self._rule.similarity for number in self._near.query(self._sketch)):
            return True
        self._near.insert(len(self._signatures), self._sketch, check_duplication=False)
        self._signatures.append(key)
        return False


def make_keys(folder: Path, group: Group, rule: Duplicates) -> np.ndarray:
    """The keys of a group, also written to a file. A killed process leaves a whole file or none."""
    found = keys(group, rule)
    with written(path(folder, group.name), durable=False) as temporary, npz(temporary) as store:
        store("keys", found)
    return found


def path(folder: Path, name: str) -> Path:
    """The file of the keys of the group `name`."""
    return folder / f"{name}.keys"


def load_keys(folder: Path, name: str) -> np.ndarray | None:
    """The keys in the file of the group `name`; None if there is none, or a power cut damaged it."""
    try:
        with open(path(folder, name), "rb") as raw, np.load(raw) as file:
            return file["keys"]
    except (FileNotFoundError, ValueError, EOFError, zipfile.BadZipFile):
        return None
