"""The checkpoints of a run at a URL, where nothing can be renamed.

A step is there once its CHECKSUMS.json is, which is written last and deleted first. A folder without it is what a process left that died in
a save or in a deletion: it is passed over, and the next process that writes there deletes it.
"""

import contextlib
import dataclasses
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from jaxenc.checkpoint import verify
from jaxenc.checkpoint.retention import CheckpointConfig, outlived
from jaxenc.checkpoint.verify import CHECKSUMS, Entries
from jaxenc.files import sha256, write_bytes
from jaxenc.storage import Folder, many


@dataclasses.dataclass(frozen=True)
class Published:
    """The steps in a folder at a URL. Raises what `storage.Folder` raises."""

    folder: Folder

    def steps(self) -> list[int]:
        """The complete steps, in order; reads no file."""
        return sorted(int(name) for name, files in self._folders().items() if name.isdigit() and CHECKSUMS in files)

    def aside(self) -> list[str]:
        """The names of the steps that were set aside."""
        return sorted(name for name in self._folders() if ".bad-" in name)

    def clean(self) -> None:
        """Deletes half-written steps, with a line on stderr for each, and what processes told each other during a save."""
        for name, files in self._folders().items():
            if name.startswith(".") or (name.isdigit() and CHECKSUMS not in files):
                self.folder.remove(f"{name}/{file}" for file in files)
                if name.isdigit():
                    where = f"checkpoint {self.folder.url}/{name}"
                    print(f"{where}: half-written (it has no {CHECKSUMS}); passed over and deleted", file=sys.stderr, flush=True)

    def newest(self, directory: Path, check: bool, aside: bool) -> int | None:
        """The newest step that verifies, whose files are then in `directory`/<step> on this machine; None where there is none. One line on
        stderr for each newer one that does not. aside: set a damaged one aside, as `set_aside` says. check: as in `verify.newest_valid`."""
        for step in reversed(self.steps()):
            problems = self.fetch(step, directory, check)
            if not problems:
                return step
            shutil.rmtree(directory / str(step))
            where = f"{self.folder.url}/{step}"
            verify.told(where, problems, f"set aside as {self.set_aside(step)}" if aside else verify.LEFT)
        return None

    def fetch(self, step: int, directory: Path, check: bool) -> list[str]:
        """Makes `directory`/<step> the folder of a step: what is there with the same sha256 stays, what is not of the step goes, the rest
        is downloaded. Returns the problems of the folder, as `verify.verify`. A process that is killed leaves no CHECKSUMS.json there."""
        place, far = directory / str(step), self.folder.below(str(step))
        place.mkdir(parents=True, exist_ok=True)
        (place / CHECKSUMS).unlink(missing_ok=True)
        content = b""
        with contextlib.suppress(FileNotFoundError):
            content = far.read(CHECKSUMS)
        write_bytes(place / CHECKSUMS, content)
        try:
            listed = verify.entries(place)
        except ValueError:
            return verify.verify(place, contents=False)
        (place / CHECKSUMS).unlink()
        for name in set(verify.files(place)) - set(listed):
            (place / name).unlink()

        def one(name: str) -> None:
            path = place / name
            if not (path.is_file() and path.stat().st_size == listed[name]["size"] and sha256(path) == listed[name]["sha256"]):
                with contextlib.suppress(FileNotFoundError):  # `verify` says that it is missing
                    path.unlink(missing_ok=True)
                    far.download(name, path)

        many(one, listed)
        write_bytes(place / CHECKSUMS, content)
        return verify.verify(place, contents=check)

    def send(self, step: int, local: Path, names: Iterable[str]) -> None:
        """Uploads files of a step, by their names in its folder `local`."""
        many(lambda name: self.folder.upload(local / name, f"{step}/{name}"), names)

    def complete(self, step: int, local: Path) -> None:
        """Uploads the CHECKSUMS.json in `local`: the step is there."""
        self.folder.upload(local / CHECKSUMS, f"{step}/{CHECKSUMS}")

    def send_part(self, step: int, process: int, entries: Entries) -> None:
        """Leaves the checksums of the files that a process has sent for process 0 (`parts`)."""
        self.folder.write(f".{step}.parts/{process}.json", json.dumps(entries).encode())

    def parts(self, step: int, count: int) -> Entries:
        """The checksums that processes 1 to count - 1 have left."""
        names = [f".{step}.parts/{process}.json" for process in range(1, count)]
        found = [json.loads(self.folder.read(name)) for name in names]
        self.folder.remove(names)
        return {file: entry for part in found for file, entry in part.items()}

    def retain(self, config: CheckpointConfig, saved: int) -> None:
        """Deletes the steps that `config` does not keep, but never the one just saved."""
        folders = self._folders()
        for step in outlived(self.steps(), config, saved):
            self.folder.remove([f"{step}/{CHECKSUMS}"])
            self.folder.remove(f"{step}/{file}" for file in folders[str(step)])

    def set_aside(self, step: int) -> str:
        """Moves the files of a damaged step to `<step>.bad-<n>`, so that the step can be saved again; returns that name.

        A move is a copy and a deletion: a process that is killed leaves the step where it was, or copied and half-deleted.
        """
        folders, number = self._folders(), 1
        while CHECKSUMS in folders.get(f"{step}.bad-{number}", ()):
            number += 1
        name, files = f"{step}.bad-{number}", folders[str(step)]
        many(lambda file: self.folder.copy(f"{step}/{file}", f"{name}/{file}"), (file for file in files if file != CHECKSUMS))
        self.folder.copy(f"{step}/{CHECKSUMS}", f"{name}/{CHECKSUMS}")
        self.folder.remove([f"{step}/{CHECKSUMS}"])
        self.folder.remove(f"{step}/{file}" for file in files)
        return name

    def _folders(self) -> dict[str, list[str]]:
        """{name of a folder: the names of the files in it and below it}."""
        found: dict[str, list[str]] = {}
        for path in self.folder.files():
            name, _, file = path.partition("/")
            if file:
                found.setdefault(name, []).append(file)
        return found
