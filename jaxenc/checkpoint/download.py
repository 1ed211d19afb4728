"""A checkpoint at a URL, downloaded to be read."""

from pathlib import Path

from jaxenc import cache, storage
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.verify import CHECKPOINTS, CHECKSUMS, FROZEN
from jaxenc.errors import UserError
from jaxenc.files import one_at_a_time, user_errors
from jaxenc.processes import barriers
from jaxenc.progress import Bars


def downloaded(url: str, check: bool, what: str, step: int = 0, frozen: bool = False) -> Path:
    """The folder on this machine with a copy of the step at a URL: the URL itself, `step` of a run, or the newest of a run that verifies.

    Files that are here with the right sha256 are not downloaded again. A damaged step is left as it is. check: as in `restore.choose`;
    what: the option that gives the URL, for messages; frozen: also download the run's teacher. Raises UserError where there is no such
    step or none that verifies.
    """
    folder = storage.folder(url)
    names, wanted = folder.names(), step or None
    if CHECKSUMS in names:
        above, _, last = folder.url.rpartition("/")
        remote, wanted = RemoteSteps(storage.folder(above)), int(last) if last.isdigit() else -1
    else:
        remote = RemoteSteps(folder.below(CHECKPOINTS) if CHECKPOINTS in names else folder)
    run = remote.folder.url.removesuffix(f"/{CHECKPOINTS}")
    root = cache.root() / "models" / cache.key(run)
    directory = root / CHECKPOINTS
    with one_at_a_time(root, storage.HERE), user_errors(root, storage.HERE), Bars().shown(f"downloading {url}"):
        if frozen:
            copies = storage.folder(run).below(FROZEN)
            for name in copies.names():
                RemoteSteps(copies.below(name)).newest(root / FROZEN / name, check, aside=False)
        newest = wanted is None
        found = remote.newest(directory, check, aside=False) if newest else _one(remote, wanted, directory, check, what)
    if found is None:
        raise UserError("holds no valid checkpoint", f"{what} {url}", "name a run directory or one of its checkpoints")
    return directory / str(found)


def downloaded_by_all(url: str, check: bool, what: str, step: int = 0, frozen: bool = False) -> Path:
    """As `downloaded`, of the same step in every process: the one that process 0 finds. Every process calls it."""
    found: list[Path] = []

    def first() -> int:
        found.append(downloaded(url, check, what, step, frozen))
        return int(found[0].name)

    chosen = barriers.from_primary("checkpoint", first)
    return found[0] if found else downloaded(url, check, what, chosen, frozen)


def _one(remote: RemoteSteps, step: int, directory: Path, check: bool, what: str) -> int:
    where = f"{what} {remote.folder.url}/{step}"
    if step not in (there := remote.steps()):
        raise UserError("no such checkpoint", where, f"use one of {', '.join(map(str, there))}" if there else f"choose another {what}")
    if problems := remote.download(step, directory, check):
        raise UserError(problems[0], where, "name another step")
    return step
