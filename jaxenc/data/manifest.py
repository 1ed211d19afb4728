"""The facts of a data folder: what it was made from, what it holds, and the checksum of every file."""

import dataclasses
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jaxenc.config import fingerprint, from_dict
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.files import inside, json_object, user_errors, write_bytes

T = TypeVar("T")
NAME = "manifest.json"
VERSION = 2  # 1 had no .words files
# Add one whenever the same request gives other pieces, so that no build continues from those of an older jaxenc, and a folder that an older
# one made is named. 1 encoded the sentences of a line apart where no blank stands between them, and ended one at a comma of Burmese.
RULES = 2
SPLITS = ("train", "held_out")
DTYPES = ("uint16", "uint32")  # of the token files


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
    """inputs, held_out, tokenizer, asked: the request; asked: by part, only options that are not the default, such as how duplicates are
    dropped. reader: what the readers changed. dtype: of the token files. files: by name. rules: the RULES of the build."""

    version: int
    inputs: tuple[Input, ...]
    held_out: float
    tokenizer: Vocabulary
    reader: Mapping[str, int]
    dtype: str
    splits: Mapping[str, Split]
    files: Mapping[str, File]
    asked: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    rules: int = RULES

    @property
    def has_words(self) -> bool:
        """Whether the shards say where words start."""
        return self.version > 1

    def sizes(self, shard: Shard) -> dict[str, int]:
        """{name of a file: its size in bytes} of a shard."""
        counts = {
            "tokens": shard.tokens * np.dtype(self.dtype).itemsize,
            "sentences": 4 * shard.sentences,
            "documents": 4 * shard.documents,
        }
        counts |= {"words": -(-shard.tokens // 8)} if self.has_words else {}
        return {f"{shard.name}.{suffix}": size for suffix, size in counts.items()}

    @property
    def request(self) -> str:
        """Fingerprint of the request: equal requests give equal data. An empty `asked` adds nothing, so that older folders keep theirs."""
        inputs = [[i.size, i.sha256] for i in self.inputs]
        more = [dict(self.asked)] if self.asked else []
        return fingerprint([self.version, inputs, self.held_out, self.tokenizer.fingerprint, *more])

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
    """The manifest of a data folder. Raises UserError when it is missing, damaged or of another version, when it names files outside of the
    folder, and when its numbers contradict each other."""
    path = Path(folder) / NAME
    with user_errors(path, "name a folder made by `jaxenc data`"):
        if not path.is_file():  # nor is one whose name no file may have (a NUL), over which read_bytes raises a ValueError
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        content = path.read_bytes()
    try:
        data = json_object(content)
        if data["version"] not in range(1, VERSION + 1):
            raise UserError(f"version {data['version']}, and this jaxenc reads 1 to {VERSION}", path, "build the data again")
        manifest = _from_json(data)
        sound = data["fingerprint"] == manifest.fingerprint
        _check(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"damaged ({type(error).__name__}: {error})", path, "build the data again") from error
    if not sound:
        raise UserError("was changed after it was written (its fingerprint does not fit)", path, "build the data again")
    return manifest


def _from_json(data: Mapping[str, Any]) -> Manifest:
    def split(name: str) -> Split:
        item = data["splits"][name]
        totals = _typed(Split, {**item, "shards": ()})
        return dataclasses.replace(totals, shards=tuple(_typed(Shard, shard) for shard in item["shards"]))

    return Manifest(
        version=int(data["version"]),
        inputs=tuple(_typed(Input, item) for item in data["inputs"]),
        held_out=float(data["held_out"]),
        tokenizer=_typed(Vocabulary, data["tokenizer"]),
        reader={str(name): int(count) for name, count in data["reader"].items()},
        dtype=str(data["dtype"]),
        splits={name: split(name) for name in SPLITS},
        files={name: _typed(File, item) for name, item in data["files"].items()},
        asked=dict(data.get("asked", {})),
        rules=int(data.get("rules", 1)),
    )


def _typed(cls: type[T], item: Any) -> T:
    try:
        return from_dict(cls, item, cls.__name__.lower())
    except UserError as error:
        raise ValueError(error) from None


def _check(manifest: Manifest) -> None:
    """ValueError where the parts of a manifest contradict each other: what it says is believed when the files are opened."""
    tokenizer, files = manifest.tokenizer, manifest.files
    if manifest.dtype not in DTYPES:
        raise ValueError(f"the dtype {manifest.dtype!r}, which is none of {', '.join(DTYPES)}")
    if outside := [name for name in files if not inside(name)]:
        raise ValueError(f"{outside[0]!r} is not a file of the folder")
    needed, optional = (tokenizer.pad, tokenizer.unk, *tokenizer.reserved), (tokenizer.cls, tokenizer.sep)
    if any(not least <= index < tokenizer.ids for least, indices in ((0, needed), (-1, optional)) for index in indices):
        raise ValueError(f"a special id outside the vocabulary of {tokenizer.ids}")
    for name, split in manifest.splits.items():
        if split.tokens != sum(shard.tokens for shard in split.shards):
            raise ValueError(f"the shards of {name} do not hold its {split.tokens} tokens")
        for shard in split.shards:
            if min(shard.documents, shard.sentences, shard.tokens) < 1 or shard.highest < 0:
                raise ValueError(f"the shard {shard.name} is empty")
            if wrong := [file for file, size in manifest.sizes(shard).items() if file not in files or files[file].size != size]:
                raise ValueError(f"{wrong[0]} has another size than what it holds")
