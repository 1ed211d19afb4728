"""A work directory at a URL: this machine works in a copy, whose changes are uploaded.

What is at the URL counts. Before a run starts, its newest complete step is downloaded, and whatever the copy has beyond the URL is deleted.
"""

import shutil
import threading
from collections.abc import Collection, Iterable
from pathlib import Path

import jax

from jaxenc import storage
from jaxenc.checkpoint.lease import Lease
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.upload import Upload
from jaxenc.checkpoint.verify import CHECKPOINTS, FROZEN, none_is_whole
from jaxenc.checkpoint.workdir import Workdir
from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.processes import barriers
from jaxenc.progress import Bars
from jaxenc.storage import Folder

# Endings of the files to download: READ_FIRST of the work directory and its runs when it is opened, READ of a run before it starts. Other
# files, such as those of TensorBoard, are only appended to.
READ_FIRST, READ = ".json", (".json", ".jsonl", ".log")


class Mirror(Workdir):
    """The copy at `path` of the work directory at `folder`. It holds the checkpoints of one run at a time."""

    per_process = True

    def __init__(self, folder: Folder, path: Path, check: bool, held_by: Lease | None) -> None:
        """check: as in `Workdir`. held_by: the lease, in process 0 only."""
        super().__init__(check)
        self._folder, self.path, self._lease = folder, path, held_by
        self._sent: dict[str, tuple[int, int]] = {}
        self._sending = threading.Lock()

    def begin(self) -> None:
        """Deletes everything in the copy except checkpoints, and downloads the JSON files of the directory and of its runs in process 0.
        Every process calls it. Raises UserError."""
        with user_errors(self.path, storage.HERE):
            self.path.mkdir(parents=True, exist_ok=True)
            for path in self.path.rglob("*"):
                if path.is_file() and not self._is_of_steps(path):
                    path.unlink()
            barriers.from_primary("files of the directory", self._read_first)

    def fetch(self, directory: Path) -> None:
        """As `Workdir.fetch`. Process 0 sets damaged steps aside and deletes half-written ones; the others download the step of process 0.
        Raises UserError."""
        url = self._at(directory).url
        with Bars(barriers.is_primary()).shown(f"downloading {url}"), user_errors(self.path, storage.HERE):
            step = barriers.from_primary("run directory", lambda: self._fill(directory, -1))
            if not barriers.is_primary():
                self._fill(directory, step)

    def newest(self, directory: Path) -> Path | None:
        """As `Workdir.newest`; the folder has no arrays."""
        remote = self._steps(directory)
        steps = remote.steps()
        return remote.download_facts(steps[-1], directory / CHECKPOINTS) if steps else None

    def holds(self, directory: Path, step: int) -> bool:
        """As `Workdir.holds`; reads no file of the step."""
        return step in self._steps(directory).steps()

    def verified(self, directory: Path, step: int) -> Path:
        """As `Workdir.verified`. Each process downloads what its copy lacks."""
        remote = self._steps(directory)
        if problems := remote.download(step, directory / CHECKPOINTS, self._check):
            raise UserError(problems[0], f"checkpoint {remote.folder.url}/{step}", "delete this run to train it again")
        return directory / CHECKPOINTS / str(step)

    def keep(self, directory: Path, steps: Collection[int]) -> None:
        """As `Workdir.keep`."""
        super().keep(directory, steps)
        remote = self._steps(directory)
        remote.delete(set(remote.steps()) - set(steps))

    def upload(self, directory: Path) -> Upload:
        """As `Workdir.upload`."""
        return Upload(RemoteSteps(self._at(directory)), self._before_step, self._check_lease)

    def publish(self) -> None:
        """As `Workdir.publish`. Raises UserError."""
        if self._lease is None:
            return
        with self._sending:
            self._lease.confirm()
            # config.json first: it makes the folder a run directory.
            for path in sorted(self.path.rglob("*"), key=lambda path: (path.name != "config.json", path)):
                name = path.relative_to(self.path).as_posix()
                if self._is_of_steps(path) or path.name.startswith(".") or not path.is_file():
                    continue
                if self._sent.get(name) != (now := _version(path)):
                    self._folder.upload(path, name)
                    self._sent[name] = now

    def named(self, text: str) -> str:
        """As `Workdir.named`."""
        return text.replace(str(self.path), self._folder.url)

    def _at(self, directory: Path) -> Folder:
        """The folder at the URL that `directory` is a copy of."""
        return self._folder if directory == self.path else self._folder.below(directory.relative_to(self.path).as_posix())

    def _steps(self, directory: Path) -> RemoteSteps:
        return RemoteSteps(self._at(directory / CHECKPOINTS))

    def _is_of_steps(self, path: Path) -> bool:
        """Whether a path of the copy is in a folder of checkpoints."""
        return bool({CHECKPOINTS, FROZEN} & set(path.relative_to(self.path).parts[:-1]))

    def _read_first(self) -> None:
        names = (name for name in self._folder.files() if name.endswith(READ_FIRST) and name.count("/") < 2)
        self._download(name for name in names if not self._is_of_steps(self.path / name))

    def _download(self, names: Iterable[str]) -> None:
        for name in names:
            self._folder.download(name, self.path / name)
            self._sent[name] = _version(self.path / name)

    def _fill(self, directory: Path, step: int) -> int:
        """Makes the copy of a run equal to the URL; returns its newest complete step, -1 without one. step: the one to download in other
        processes than 0, which chooses it."""
        for other in self.path.glob(f"*/{CHECKPOINTS}"):
            if other.parent != directory:
                shutil.rmtree(other)
        directory.mkdir(parents=True, exist_ok=True)
        run = self._at(directory)
        read = (name for name in run.names() if name.endswith(READ) and not name.startswith("."))
        below = [(directory / name).relative_to(self.path).as_posix() for name in read]
        self._download(name for name in below if name not in self._sent)
        frozen = run.below(FROZEN).names()
        for path in (directory / FROZEN).iterdir() if (directory / FROZEN).is_dir() else ():
            if path.name not in frozen:
                shutil.rmtree(path)
        for name in frozen:
            self._newest(directory / FROZEN / name, -1)
        newest = self._newest(directory / CHECKPOINTS, step)
        if newest < 0 and self._lease and (aside := self._steps(directory).aside()):
            raise none_is_whole(aside, run.url)
        return newest

    def _newest(self, directory: Path, step: int) -> int:
        """The newest step of a folder of checkpoints, downloaded; -1 without one. step: as in `_fill`."""
        remote = RemoteSteps(self._at(directory))
        if self._lease:
            remote.clean()
            newest = remote.newest(directory, self._check, aside=True)
        elif directory.parent.name == FROZEN:
            newest = remote.newest(directory, self._check, aside=False)
        else:
            newest = step if step >= 0 else None
            if newest is not None and (problems := remote.download(newest, directory, self._check)):
                what = f"{problems[0]} in process {jax.process_index()}, and not in process 0"
                raise UserError(what, f"checkpoint {remote.folder.url}/{newest}", "start again")
        for path in directory.iterdir() if directory.is_dir() else ():
            if path.name != str(newest):
                shutil.rmtree(path)
        return -1 if newest is None else newest

    def _before_step(self) -> None:
        self.publish()
        if self._lease:
            self._lease.confirm()

    def _check_lease(self) -> None:
        if self._lease:
            self._lease.check()


def _version(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns
