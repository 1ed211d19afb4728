"""The facts of a data folder: what it was made from, what it holds, and the checksum of every file."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.config import fingerprint
from jaxenc.data.files import user_errors, write_bytes
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError

NAME = "manifest.json"
VERSION = 2  # 1 had no .words files
SPLITS = ("train", "held_out")


@dataclasses.dataclass(frozen=True)
class Input:
    """One input as it was named. size: bytes, 0 for the embedded corpus; sha256: of its bytes, or the embedded corpus's identity."""

    name: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Shard:
    """name: of its files, without their suffixes; highest: the largest id in it."""

    name: str
    documents: int
    sentences: int
    tokens: int
    highest: int


@dataclasses.dataclass(frozen=True)
class Split:
    """Totals of one split. unknown: tokens that are predicted as the unknown one; the others: what had no token at all and was dropped."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    empty_sentences: int = 0
    empty_documents: int = 0
    shards: tuple[Shard, ...] = ()


@dataclasses.dataclass(frozen=True)
class File:
    """size in bytes, and sha256."""

    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """inputs, held_out, tokenizer: what was asked for. reader: what the readers changed. dtype: of the token files. files: by name."""

    version: int
    inputs: tuple[Input, ...]
    held_out: float
    tokenizer: Vocabulary
    reader: Mapping[str, int]
    dtype: str
    splits: Mapping[str, Split]
    files: Mapping[str, File]

    @property
    def has_words(self) -> bool:
        """Whether the shards say where words start."""
        return self.version > 1

    @property
    def request(self) -> str:
        """Fingerprint of what was asked for: equal requests give equal data."""
        inputs = [[i.size, i.sha256] for i in self.inputs]
        return fingerprint([self.version, inputs, self.held_out, self.tokenizer.fingerprint])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the data itself: every file's checksum and the tokenizer."""
        return fingerprint([self.version, self.tokenizer.fingerprint, {name: file.sha256 for name, file in self.files.items()}])


def write(manifest: Manifest, folder: Path) -> None:
    """Writes `manifest.json`; `fingerprint` and the share of unknown tokens are added for the reader's eye."""
    data = dataclasses.asdict(manifest)
    total = sum(split.tokens for split in manifest.splits.values())
    data["unknown_share"] = sum(split.unknown for split in manifest.splits.values()) / max(total, 1)
    data["fingerprint"] = manifest.fingerprint
    write_bytes(folder / NAME, (json.dumps(data, indent=1) + "\n").encode())


def read(folder: str | Path) -> Manifest:
    """The manifest of a data folder. Raises UserError when it is missing, damaged, or of another version."""
    path = Path(folder) / NAME
    with user_errors(path, "name a folder made by `jaxenc data`"):
        content = path.read_bytes()
    try:
        data = json.loads(content)
        if data["version"] not in range(1, VERSION + 1):
            raise UserError(f"{path}: version {data['version']}, and this jaxenc reads 1 to {VERSION}; build the data again")
        manifest = _from_json(data)
        sound = data["fingerprint"] == manifest.fingerprint
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: damaged ({type(error).__name__}: {error}); build the data again") from error
    if not sound:
        raise UserError(f"{path}: was changed after it was written (its fingerprint does not fit); build the data again")
    return manifest


def _from_json(data: Mapping[str, Any]) -> Manifest:
    split = lambda item: Split(**item | {"shards": tuple(Shard(**shard) for shard in item["shards"])})
    return Manifest(
        version=data["version"],
        inputs=tuple(Input(**item) for item in data["inputs"]),
        held_out=data["held_out"],
        tokenizer=Vocabulary(**data["tokenizer"] | {"reserved": tuple(data["tokenizer"]["reserved"])}),
        reader=data["reader"],
        dtype=data["dtype"],
        splits={name: split(data["splits"][name]) for name in SPLITS},
        files={name: File(**item) for name, item in data["files"].items()},
    )
