"""A work directory at a URL: this machine works in a copy, whose changes are uploaded.

What is at the URL counts. At a start the newest complete step is downloaded, and whatever the copy has beyond it is deleted.
"""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import jax

from jaxenc import storage
from jaxenc.checkpoint import lease
from jaxenc.checkpoint.lease import Lease
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.upload import NoUpload, Upload
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.data.folders import must_hold_a_run
from jaxenc.errors import Diverged, UserError
from jaxenc.files import held, json_object, user_errors
from jaxenc.processes import barriers
from jaxenc.progress import Bars
from jaxenc.storage import Folder

STEPS, FROZEN = "checkpoints", "frozen"
# What a run has that was killed before it wrote its config.json.
BEGUN = {STEPS, FROZEN, "tensorboard"}
# Files of the run that a start reads or continues; others, such as those of TensorBoard, are only added to.
READ = (".json", ".jsonl", ".log")


class Workdir:
    """A work directory on a disk of this machine, or on one that all machines share.

    per_process: whether each process works in a copy of its own.
    """

    per_process = False

    def upload(self, directory: Path) -> NoUpload:
        """The upload of the steps in a directory of checkpoints."""
        return NoUpload()

    def publish(self) -> None:
        """Uploads the files of the run that have changed; called in process 0."""

    def named(self, text: str) -> str:
        """`text` with the URL of the directory in the place of the path of its copy."""
        return text


class Mirror(Workdir):
    """The copy at `path` of the work directory at `folder`; `opened` fills it."""

    per_process = True

    def __init__(self, folder: Folder, path: Path, held_by: Lease | None) -> None:
        """held_by: the lease, in process 0 only."""
        self._folder, self.path, self._lease = folder, path, held_by
        self._sent: dict[str, tuple[int, int]] = {}
        self._sending = threading.Lock()

    def upload(self, directory: Path) -> NoUpload:
        """As `Workdir.upload`."""
        below = directory.relative_to(self.path).as_posix()
        return Upload(RemoteSteps(self._folder.below(below)), self._before_step, self._check)

    def publish(self) -> None:
        """As `Workdir.publish`. Raises UserError."""
        if self._lease is None:
            return
        with self._sending:
            self._lease.confirm()
            # config.json first: it makes the folder a run directory.
            for path in sorted(self.path.rglob("*"), key=lambda path: (path.name != "config.json", path)):
                name = path.relative_to(self.path).as_posix()
                if name.startswith((f"{STEPS}/", f"{FROZEN}/")) or path.name.startswith(".") or not path.is_file():
                    continue
                if self._sent.get(name) != (now := _version(path)):
                    self._folder.upload(path, name)
                    self._sent[name] = now

    def named(self, text: str) -> str:
        """As `Workdir.named`."""
        return text.replace(str(self.path), self._folder.url)

    def fill(self, check: bool, step: int) -> int:
        """Makes the copy equal to the URL; returns its newest complete step, -1 where there is none. Process 0 sets damaged steps aside and
        deletes half-written ones; the others download `step`, the one of process 0. Raises UserError."""
        with user_errors(self.path, storage.HERE):
            return self._fill(check, step)

    def _fill(self, check: bool, step: int) -> int:
        self.path.mkdir(parents=True, exist_ok=True)
        for path in self.path.iterdir():
            if path.name not in (STEPS, FROZEN):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name in self._folder.names():
            if name.endswith(READ) and not name.startswith("."):
                self._folder.download(name, self.path / name)
                self._sent[name] = _version(self.path / name)
        frozen = self._folder.below(FROZEN).names()
        for path in (self.path / FROZEN).iterdir() if (self.path / FROZEN).is_dir() else ():
            if path.name not in frozen:
                shutil.rmtree(path)
        for name in frozen:
            self._newest(f"{FROZEN}/{name}", check, -1)
        return self._newest(STEPS, check, step)

    def _newest(self, name: str, check: bool, step: int) -> int:
        remote, directory = RemoteSteps(self._folder.below(name)), self.path / name
        if self._lease:
            remote.clean()
            newest = remote.newest(directory, check, aside=True)
            if newest is None and name == STEPS and (aside := remote.aside()):
                what = f"no checkpoint of this run is whole (set aside: {', '.join(aside)})"
                raise UserError(what, self._folder.url, "choose another --workdir, or delete this one to start over")
        elif name != STEPS:
            newest = remote.newest(directory, check, aside=False)
        else:
            newest = step if step >= 0 else None
            if newest is not None and (problems := remote.download(newest, directory, check)):
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

    def _check(self) -> None:
        if self._lease:
            self._lease.check()


def _version(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


@contextlib.contextmanager
def opened(workdir: str | Path, check: bool) -> Iterator[tuple[Path, Workdir]]:
    """(folder to work in, Workdir) of a work directory: the folder itself, or for a URL a filled copy, whose last changes are uploaded at
    the end. Every process calls it; process 0 holds the lease. check: as in `restore.choose`.

    Raises UserError where it is neither new nor a run, and for a URL that cannot be written to or that another process writes to. An error
    of the block names the URL in the place of the copy.
    """
    if not storage.is_url(workdir):
        storage.must_be_local(workdir, "--workdir")
        must_hold_a_run(Path(workdir), "--workdir")
        yield Path(workdir), Workdir()
        return
    folder, index = storage.folder(str(workdir)), jax.process_index()
    root = storage.cache() / "runs" / storage.key(folder.url) / str(index)
    with contextlib.ExitStack() as owned:
        with user_errors(root, storage.HERE):
            root.mkdir(parents=True, exist_ok=True)
        try:
            owned.enter_context(held(root, "wait for it, or choose another --workdir"))
        except UserError as error:
            raise UserError(f"{error.what} (its copy {error.where})", folder.url, error.fix) from error
        mirrors: list[Mirror] = []

        def begin() -> list[object]:
            _probe(folder)
            _must_hold_a_run(folder)
            mine = owned.enter_context(Lease(folder))
            mirrors.append(Mirror(folder, root / "run", mine))
            return [mine.token, mirrors[0].fill(check, -1)]

        with Bars(barriers.is_primary()).shown(f"downloading {folder.url}"):
            token, step = barriers.from_primary(f"work directory {folder.url}", begin)
        if not barriers.is_primary():
            if lease.owner(folder) != token:
                what = f"process {index} does not see the files that process 0 writes there"
                raise UserError(what, folder.url, "give all processes one --workdir that they share")
            mirrors.append(Mirror(folder, root / "run", None))
            mirrors[0].fill(check, step)
        (mirror,) = mirrors
        try:
            yield mirror.path, mirror
        except (UserError, Diverged) as error:
            with contextlib.suppress(UserError):
                mirror.publish()
            if isinstance(error, Diverged):
                raise
            raise error.renamed(mirror.path, folder.url) from error
        with Bars(barriers.is_primary()).shown(f"uploading to {folder.url}"):
            mirror.publish()


def is_saved(workdir: str | Path, step: int) -> bool:
    """Whether a work directory, or the one at a URL, has a checkpoint of `step`."""
    if storage.is_url(workdir):
        return step in RemoteSteps(storage.folder(str(workdir)).below(STEPS)).steps()
    return (Path(workdir) / STEPS / str(step)).is_dir()


def _probe(folder: Folder) -> None:
    """Raises UserError where this process may not write, read or delete, before the first checkpoint has to."""
    name = ".probe"
    folder.write(name, b"jaxenc")
    if folder.read(name) != b"jaxenc":
        raise UserError("what was written there reads back differently", folder.url, "choose another --workdir")
    folder.remove([name])


def _must_hold_a_run(folder: Folder) -> None:
    """As `data.folders.must_hold_a_run`."""
    names = {name for name in folder.names() if not name.startswith(".")}
    if names - BEGUN and (CHECKSUMS in names or not _has_config(folder)):
        shown = ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise UserError(f"exists already, a folder with {shown}, and is not a run directory", folder.url, "choose another --workdir")


def _has_config(folder: Folder) -> bool:
    """Whether the folder has the config.json of a run."""
    try:
        data = json_object(folder.read("config.json"))
    except (FileNotFoundError, ValueError):
        return False
    return all(isinstance(data.get(part), dict) for part in ("objective", "model"))
