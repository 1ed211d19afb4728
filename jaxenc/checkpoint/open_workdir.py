"""Opens a work directory: a folder, or the copy of one at a URL."""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import jax

from jaxenc import cache, storage
from jaxenc.checkpoint import lease
from jaxenc.checkpoint.lease import BUSY, Lease
from jaxenc.checkpoint.mirror import Mirror
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.verify import CHECKPOINTS, CHECKSUMS, FROZEN
from jaxenc.checkpoint.workdir import Workdir
from jaxenc.data.folders import is_ignored, is_run_config, listed, matches, must_be_named, must_hold_a_run, must_hold_only
from jaxenc.errors import Diverged, UserError
from jaxenc.files import locked, user_errors
from jaxenc.processes import barriers
from jaxenc.processes.visible import unseen
from jaxenc.progress import Bars
from jaxenc.storage import Folder

# What a run may leave that was killed before it wrote its config.json.
BEGUN = {CHECKPOINTS, FROZEN, "tensorboard"}


@contextlib.contextmanager
def opened(workdir: str | Path, check: bool, only: Collection[str] = ()) -> Iterator[tuple[Path, Workdir]]:
    """(folder to work in, Workdir) of a work directory: the folder itself, or for a URL a copy, whose last changes are uploaded at the end.
    Every process calls it; process 0 holds the lease. check: as in `Workdir`. only: the names that the directory may hold, as patterns of
    `fnmatch`; () for a run directory.

    Raises UserError if the directory holds anything else, and for a URL that cannot be written to or that another process writes to. An
    error raised in the block names the URL instead of the copy.
    """
    if not storage.is_url(workdir):
        storage.must_be_local(workdir, "--workdir", storage.AS_TEXT)
        here = must_be_named(workdir, "--workdir")
        if only:
            must_hold_only(here, only, "--workdir")
        else:
            must_hold_a_run(here, "--workdir")
        yield here, Workdir(check)
        return
    folder, index = storage.folder(str(workdir)), jax.process_index()
    root = cache.root() / "runs" / cache.key(folder.url) / str(index)
    with contextlib.ExitStack() as owned:
        with user_errors(root, storage.HERE):
            root.mkdir(parents=True, exist_ok=True)
        try:
            owned.enter_context(locked(root, BUSY))
        except UserError as error:
            raise UserError(f"{error.what} (its copy {error.where})", folder.url, error.fix) from error
        mirror = _mirror(folder, root / "run", check, only, owned)
        try:
            mirror.begin()
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
        return step in RemoteSteps(storage.folder(str(workdir)).below(CHECKPOINTS)).steps()
    return (Path(workdir) / CHECKPOINTS / str(step)).is_dir()


def _mirror(folder: Folder, path: Path, check: bool, only: Collection[str], owned: contextlib.ExitStack) -> Mirror:
    """The copy of a work directory; in process 0 with the lease, which `owned` releases. Raises UserError as `opened`."""
    leases: list[Lease] = []

    def begin() -> str:
        folder.must_be_writable("--workdir")
        _must_hold(folder, only)
        leases.append(owned.enter_context(Lease(folder)))
        return leases[0].token

    token = barriers.from_primary(f"work directory {folder.url}", begin)
    if not barriers.is_primary() and lease.owner(folder) != token:
        raise unseen(folder.url)
    return Mirror(folder, path, check, leases[0] if leases else None)


def _must_hold(folder: Folder, only: Collection[str]) -> None:
    """As `data.folders.must_hold_only`, or without `only` as `data.folders.must_hold_a_run`."""
    names = {name for name in folder.names() if not name.startswith(".") and not is_ignored(name)}
    if only:
        wrong = not all(matches(name, only) for name in names)
    else:
        wrong = bool(names - BEGUN) and (CHECKSUMS in names or not _has_config(folder))
    if wrong:
        kind = "" if only else ", and is not a run directory"
        raise UserError(f"exists already, {listed(sorted(names))}{kind}", folder.url, "choose another --workdir")


def _has_config(folder: Folder) -> bool:
    """Whether the folder has the config.json of a run."""
    with contextlib.suppress(FileNotFoundError):
        return is_run_config(folder.read("config.json"))
    return False
