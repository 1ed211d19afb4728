"""The checkpoints of a run at a URL, where nothing can be renamed.

A step exists once its CHECKSUMS.json does, which is written last and deleted first. A folder without it was left by a process that died
while it saved or deleted the step: it is ignored, and deleted by the next process that writes there.
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
from jaxenc.checkpoint.verify import CHECKSUMS, STATE, Entries
from jaxenc.files import sha256, write_bytes
from jaxenc.storage import Folder, many


@dataclasses.dataclass(frozen=True)
class RemoteSteps:
    """The steps in a folder at a URL. Raises what `storage.Folder` raises."""

    folder: Folder

    def steps(self) -> list[int]:
        """The numbers of the complete steps, in order; reads no file."""
        return sorted(int(name) for name, files in self._folders().items() if name.isdigit() and CHECKSUMS in files)

    def aside(self) -> list[str]:
        """The names of the steps that were set aside."""
        return sorted(name for name in self._folders() if ".bad-" in name)

    def clean(self) -> None:
        """Deletes half-written steps, with a line on stderr for each, and the checksums that processes exchanged during a save."""
        for name, files in self._folders().items():
            if name.startswith(".") or (name.isdigit() and CHECKSUMS not in files):
                self.folder.remove(f"{name}/{file}" for file in files)
                if name.isdigit():
                    where = f"checkpoint {self.folder.url}/{name}"
                    print(f"{where}: half-written (it has no {CHECKSUMS}); ignored and deleted", file=sys.stderr, flush=True)

    def newest(self, directory: Path, check: bool, aside: bool) -> int | None:
        """The newest step that verifies, downloaded to `directory`/<step>; None where there is none. One line on stderr for each newer step
        that does not verify. aside: set such a step aside, as `set_aside` does. check: as in `verify.newest_valid`."""
        for step in reversed(self.steps()):
            problems = self.download(step, directory, check)
            if not problems:
                return step
            shutil.rmtree(directory / str(step))
            where = f"{self.folder.url}/{step}"
            verify.report_invalid(where, problems, f"set aside as {self.set_aside(step)}" if aside else verify.LEFT)
        return None

    def download(self, step: int, directory: Path, check: bool) -> list[str]:
        """Makes `directory`/<step> a copy of a step: files with the right sha256 stay, files that are not of the step are deleted, the rest
        is downloaded. Returns the problems of the copy, as `verify.verify`. A process that is killed leaves no CHECKSUMS.json there."""
        local, source = directory / str(step), self.folder.below(str(step))
        local.mkdir(parents=True, exist_ok=True)
        (local / CHECKSUMS).unlink(missing_ok=True)
        content = b""
        with contextlib.suppress(FileNotFoundError):
            content = source.read(CHECKSUMS)
        write_bytes(local / CHECKSUMS, content)
        try:
            listed = verify.entries(local)
        except ValueError:
            return verify.verify(local, contents=False)
        (local / CHECKSUMS).unlink()
        for name in set(verify.files(local)) - set(listed):
            (local / name).unlink()

        def one(name: str) -> None:
            path = local / name
            if not (path.is_file() and path.stat().st_size == listed[name]["size"] and sha256(path) == listed[name]["sha256"]):
                with contextlib.suppress(FileNotFoundError):  # `verify` says that it is missing
                    path.unlink(missing_ok=True)
                    source.download(name, path)

        many(one, listed)
        write_bytes(local / CHECKSUMS, content)
        return verify.verify(local, contents=check)

    def download_facts(self, step: int, directory: Path) -> Path:
        """Copies a step without its arrays and checksums to `directory`/<step>; returns that folder, which does not verify."""
        local, source = directory / str(step), self.folder.below(str(step))
        names = (name for name in source.files() if not name.startswith(f"{STATE}/") and name != CHECKSUMS)
        many(lambda name: source.download(name, local / name), names)
        return local

    def send(self, step: int, local: Path, names: Iterable[str]) -> None:
        """Uploads files of a step. local: its folder here; names: of the files in it."""
        many(lambda name: self.folder.upload(local / name, f"{step}/{name}"), names)

    def complete(self, step: int, local: Path) -> None:
        """Uploads the CHECKSUMS.json in `local`, which makes the step complete."""
        self.folder.upload(local / CHECKSUMS, f"{step}/{CHECKSUMS}")

    def send_part(self, step: int, process: int, entries: Entries) -> None:
        """Writes the checksums of the files that a process has sent, for process 0 to read (`parts`)."""
        self.folder.write(f".{step}.parts/{process}.json", json.dumps(entries).encode())

    def parts(self, step: int, count: int) -> Entries:
        """The checksums that processes 1 to count - 1 have written; deletes them."""
        names = [f".{step}.parts/{process}.json" for process in range(1, count)]
        found = [json.loads(self.folder.read(name)) for name in names]
        self.folder.remove(names)
        return {file: entry for part in found for file, entry in part.items()}

    def retain(self, config: CheckpointConfig, saved: int) -> None:
        """Deletes the steps that `config` does not keep, but never the one just saved."""
        self.delete(outlived(self.steps(), config, saved))

    def delete(self, steps: Iterable[int]) -> None:
        """Deletes complete steps."""
        folders = self._folders()
        for step in steps:
            self.folder.remove([f"{step}/{CHECKSUMS}"])
            self.folder.remove(f"{step}/{file}" for file in folders[str(step)])

    def set_aside(self, step: int) -> str:
        """Moves the files of a damaged step to `<step>.bad-<n>`, so that the step can be saved again; returns that name.

        A move is a copy and a deletion: a process that is killed leaves the step as it was, or copied and partly deleted.
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
        """{name of a folder: names of the files below it}."""
        found: dict[str, list[str]] = {}
        for path in self.folder.files():
            name, _, file = path.partition("/")
            if file:
                found.setdefault(name, []).append(file)
        return found
