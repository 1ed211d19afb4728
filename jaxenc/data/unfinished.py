"""The working folder of a build: it keeps what an interrupted build has finished, and the same command continues from there."""

import contextlib
import dataclasses
import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxenc.config import fingerprint
from jaxenc.data import manifest, pieces
from jaxenc.data.facts import Facts
from jaxenc.data.manifest import SPLITS, File, Shard
from jaxenc.data.shard_writer import Written
from jaxenc.errors import UserError
from jaxenc.files import flush, flush_all, locked, read_json, write_bytes

PROGRESS = "progress.json"


@dataclasses.dataclass(frozen=True)
class Finished:
    """The finished shards of one split. groups: the number of groups in them; last: the name of the last group, '' for none."""

    shards: tuple[Written, ...] = ()
    groups: int = 0
    last: str = ""


class Unfinished:
    """Owns the folder of one build.

    new: becomes the data folder; pieces: files of finished groups that no shard holds yet, and the keys that find duplicates. Only shards
    that `progress.json` names are finished; it is replaced in one move, after their bytes are on the disk.
    """

    def __init__(self, place: Path, request: str):
        self.place, self.new, self.pieces, self._request = place, place / "new", place / "pieces", request
        self.finished: dict[str, Finished] = dict.fromkeys(SPLITS, Finished())
        self._read()
        self._tidy()

    @property
    def last(self) -> dict[str, str]:
        """{split: the last group that its shards hold}."""
        return {split: finished.last for split, finished in self.finished.items()}

    def found(self, name: str) -> dict[str, Facts] | None:
        """As the function `found`, in this folder."""
        return found(self.pieces, self.last, name)

    def all_found(self) -> Iterator[tuple[str, dict[str, Facts]]]:
        """(name, facts by split) of every finished group that some split's shards do not hold yet, in the order of the text."""
        return ((name, found(self.pieces, self.last, name)) for name in self._names())

    def count(self) -> int:
        """How many groups are finished."""
        last, groups = min((finished.last, finished.groups) for finished in self.finished.values())
        return groups + sum(name > last for name in self._names())

    def clear(self) -> None:
        """Deletes everything, for a request that cannot give a data folder."""
        _clear(self.place)
        self.finished = dict.fromkeys(SPLITS, Finished())

    def _names(self) -> list[str]:
        """The groups all of whose needed pieces are here, sorted."""
        names = {path.name.partition(".")[0] for path in self.pieces.glob("*.npz")}
        return sorted(name for name in names if all(map(Path.exists, _needed(self.pieces, self.last, name).values())))

    def add(self, split: str, written: Written, names: list[str]) -> None:
        """Records a written shard, of the groups `names`, and deletes their pieces."""
        before = self.finished[split]
        shards = (*before.shards, written) if written.shard.tokens or written.facts != Facts() else before.shards
        self.finished[split] = Finished(shards, before.groups + len(names), names[-1])
        flush(self.new)
        splits = {name: dataclasses.asdict(finished) for name, finished in self.finished.items()}
        write_bytes(self.place / PROGRESS, json.dumps({"request": self._request, "splits": splits}).encode())
        self._delete_pieces(split, names)

    def _delete_pieces(self, split: str, names: list[str]) -> None:
        for name in names:
            pieces.path(self.pieces, name, split).unlink(missing_ok=True)

    def _read(self) -> None:
        path = self.place / PROGRESS
        if not self.new.exists():  # it became the data folder, which was then deleted
            path.unlink(missing_ok=True)
        if not path.exists():
            return
        advice = f"delete {self.place} and run the command again"
        data = read_json(path, advice)
        try:
            if data["request"] != self._request:
                raise ValueError("of another request")
            self.finished = {split: _finished(data["splits"][split]) for split in SPLITS}
            named = {name: file for one in self.finished.values() for shard in one.shards for name, file in shard.files.items()}
            if wrong := [name for name, file in named.items() if (self.new / name).stat().st_size != file.size]:
                raise ValueError(f"{wrong[0]} has another size")
        except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
            raise UserError(f"damaged ({error})", path, advice) from error

    def _tidy(self) -> None:
        """Deletes what a killed process left behind: half-written files, shards that were never recorded, pieces that a shard holds."""
        self.pieces.mkdir(exist_ok=True)
        self.new.mkdir(exist_ok=True)
        named = {name for one in self.finished.values() for shard in one.shards for name in shard.files}
        for path in self.new.iterdir():
            if path.is_file() and path.name not in named:
                path.unlink()
        for path in [*self.pieces.glob(".*"), *self.place.glob(f".{PROGRESS}.*")]:
            path.unlink(missing_ok=True)
        for split, finished in self.finished.items():
            for path in self.pieces.glob(f"*.{split}.npz"):
                if path.name.partition(".")[0] <= finished.last:
                    path.unlink()


def _finished(data: Mapping[str, Any]) -> Finished:
    shards = (
        Written(Shard(**item["shard"]), {name: File(**file) for name, file in item["files"].items()}, Facts.from_json(item["facts"]))
        for item in data["shards"]
    )
    return Finished(tuple(shards), int(data["groups"]), str(data["last"]))


def found(folder: Path, last: Mapping[str, str], name: str) -> dict[str, Facts] | None:
    """{split: facts} of a finished group, for the splits whose shards do not hold it yet; None if a piece of it in `folder` is missing or
    damaged.

    last: {split: the last group that its shards hold}.
    """
    try:
        return {split: pieces.load_facts(path) for split, path in _needed(folder, last, name).items()}
    except (FileNotFoundError, UserError):
        return None


def _needed(folder: Path, last: Mapping[str, str], name: str) -> dict[str, Path]:
    """The pieces of a group that no shard holds yet."""
    return {split: pieces.path(folder, name, split) for split in last if name > last[split]}


def place_of(out: Path, request: str) -> Path:
    """The folder of the build of a request into `out`: next to `out`, so that one move completes it."""
    return out.with_name(f"{_prefix(out)}{fingerprint([manifest.RULES, request])[:16]}")


def others(out: Path, request: str) -> list[Path]:
    """Folders of unfinished builds of other requests into `out`."""
    found = out.parent.iterdir() if out.parent.is_dir() else ()
    return sorted(path for path in found if path.name.startswith(_prefix(out)) and path != place_of(out, request))


def _prefix(out: Path) -> str:
    return f".{out.name}.unfinished-"


@contextlib.contextmanager
def opened(out: Path, request: str) -> Iterator[Unfinished]:
    """The folder of a build, locked against a second process. When the block succeeds, `new` is flushed to the disk and becomes `out`.

    When it fails or is interrupted, finished groups are kept and a message says so; the folder is removed if there are none.
    Raises UserError while another process builds the same data.
    """
    out = out.resolve()
    place = place_of(out, request)
    with locked(place, "wait for it, or choose another --out"):
        build = Unfinished(place, request)
        try:
            yield build
            flush_all(build.new)
            _moved(build.new, out)
            flush(out.parent)
        except BaseException:
            if groups := build.count():
                noun = "groups are" if groups > 1 else "group is"
                print(f"data: {groups:,} {noun} finished and kept in {place}; the same command goes on from there", file=sys.stderr)
            else:
                _clear(place)
            raise
        _clear(place)


def _moved(new: Path, out: Path) -> None:
    """Renames `new` to `out`. Raises UserError where another build has written `out` in the meantime."""
    try:
        os.replace(new, out)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise UserError("another build wrote it while this one ran", out, "delete it or choose another --out") from error


def remove(out: Path, request: str) -> None:
    """Removes the folder of a build that was killed after it was complete."""
    place = place_of(out.resolve(), request)
    if place.exists():
        with locked(place, "wait for it, or choose another --out"):
            _clear(place)


def _clear(place: Path) -> None:
    """Empties a folder; `held` then removes it."""
    for path in place.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
