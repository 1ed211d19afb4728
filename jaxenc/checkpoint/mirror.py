"""A run's directory at a URL: this machine works in a copy, and what changes there is uploaded.

The URL is the truth. At a start the copy is cut back to it: the newest complete step is downloaded, and what the copy has beyond it goes.
"""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import jax

from jaxenc import storage
from jaxenc.checkpoint import lease
from jaxenc.checkpoint.destination import AtUrl, Nowhere
from jaxenc.checkpoint.lease import Lease
from jaxenc.checkpoint.published import Published
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.data.folders import must_hold_a_run
from jaxenc.errors import Diverged, UserError
from jaxenc.files import held, json_object, user_errors
from jaxenc.processes import barriers
from jaxenc.storage import Folder

STEPS, FROZEN = "checkpoints", "frozen"
# Of a run that was killed before its config.json was there.
BEGUN = {STEPS, FROZEN, "tensorboard"}
# Files of the run that a start reads or continues; others, such as those of TensorBoard, are only added to.
READ = (".json", ".jsonl", ".log")


class Here:
    """A work directory that is a folder of this machine, or on a disk that all machines share."""

    apart = False

    def destination(self, directory: Path) -> Nowhere:
        """Where the steps of a directory of checkpoints go besides."""
        return Nowhere()

    def publish(self) -> None:
        """Uploads the files of the run that have changed; called in process 0."""

    def named(self, text: str) -> str:
        """`text` for a person, who knows the directory by its URL."""
        return text


class Mirror(Here):
    """The copy at `path` of the work directory at `folder`; `open_` fills it. Each process has one of its own."""

    apart = True

    def __init__(self, folder: Folder, path: Path, held_by: Lease | None) -> None:
        """held_by: the lease, in process 0."""
        self._folder, self.path, self._lease = folder, path, held_by
        self._sent: dict[str, tuple[int, int]] = {}
        self._sending = threading.Lock()

    def destination(self, directory: Path) -> Nowhere:
        """As `Here.destination`."""
        below = directory.relative_to(self.path).as_posix()
        return AtUrl(Published(self._folder.below(below)), self._before_step, self._check)

    def publish(self) -> None:
        """As `Here.publish`. Raises UserError."""
        if self._lease is None:
            return
        with self._sending:
            self._lease.confirm()
            # config.json first: what has it is a run's directory.
            for path in sorted(self.path.rglob("*"), key=lambda path: (path.name != "config.json", path)):
                name = path.relative_to(self.path).as_posix()
                if name.startswith((f"{STEPS}/", f"{FROZEN}/")) or path.name.startswith(".") or not path.is_file():
                    continue
                if self._sent.get(name) != (now := _version(path)):
                    self._folder.upload(path, name)
                    self._sent[name] = now

    def named(self, text: str) -> str:
        """As `Here.named`."""
        return text.replace(str(self.path), self._folder.url)

    def fill(self, check: bool, step: int) -> int:
        """Makes the copy what is at the URL; returns the newest complete step, -1 where there is none. In process 0 it sets damaged steps
        aside and deletes half-written ones; the others get `step`, process 0's. Raises UserError."""
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
        published, directory = Published(self._folder.below(name)), self.path / name
        if self._lease:
            published.clean()
            newest = published.newest(directory, check, aside=True)
            if newest is None and name == STEPS and (aside := published.aside()):
                what = f"no checkpoint of this run is whole (set aside: {', '.join(aside)})"
                raise UserError(what, self._folder.url, "choose another --workdir, or delete this one to start over")
        elif name != STEPS:
            newest = published.newest(directory, check, aside=False)
        else:
            newest = step if step >= 0 else None
            if newest is not None and (problems := published.fetch(newest, directory, check)):
                what = f"{problems[0]} in process {jax.process_index()}, and not in process 0"
                raise UserError(what, f"checkpoint {published.folder.url}/{newest}", "start again")
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
def opened(workdir: str | Path, check: bool) -> Iterator[tuple[Path, Here]]:
    """(the folder to work in, what to do with it) of a work directory: itself, or for a URL a copy, filled, whose changes are uploaded at
    the end too. Every process calls it; process 0 has the lease. check: as in `restore.choose`.

    Raises UserError where it is neither new nor a run, and, for a URL, where it cannot be written to or another process writes there, and
    for what is at fault in the block with the URL in the place of the copy.
    """
    if not storage.is_url(workdir):
        storage.must_be_local(workdir, "--workdir")
        must_hold_a_run(Path(workdir), "--workdir")
        yield Path(workdir), Here()
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
            return [mine.word, mirrors[0].fill(check, -1)]

        word, step = barriers.from_primary(f"work directory {folder.url}", begin)
        if not barriers.is_primary():
            if lease.owner(folder) != word:
                what = f"process {index} does not see there what process 0 writes"
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
        mirror.publish()


def is_saved(workdir: str | Path, step: int) -> bool:
    """Whether a work directory, or the one at a URL, has a checkpoint of `step`."""
    if storage.is_url(workdir):
        return step in Published(storage.folder(str(workdir)).below(STEPS)).steps()
    return (Path(workdir) / STEPS / str(step)).is_dir()


def _probe(folder: Folder) -> None:
    """Raises UserError where this process may not write, read or delete: now, and not at the first checkpoint."""
    name = ".probe"
    folder.write(name, b"jaxenc")
    if folder.read(name) != b"jaxenc":
        raise UserError("it does not give back what was written", folder.url, "choose another --workdir")
    folder.remove([name])


def _must_hold_a_run(folder: Folder) -> None:
    """As `data.folders.must_hold_a_run`."""
    names = {name for name in folder.names() if not name.startswith(".")}
    if names - BEGUN and (CHECKSUMS in names or not _has_config(folder)):
        shown = ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise UserError(f"exists already, a folder with {shown}, and is no run directory", folder.url, "choose another --workdir")


def _has_config(folder: Folder) -> bool:
    """Whether the folder has the config.json of a run."""
    try:
        data = json_object(folder.read("config.json"))
    except (FileNotFoundError, ValueError):
        return False
    return all(isinstance(data.get(part), dict) for part in ("objective", "model"))
