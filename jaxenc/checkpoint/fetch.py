"""A checkpoint at a URL, copied to this machine to be read."""

from pathlib import Path

from jaxenc import storage
from jaxenc.checkpoint.published import Published
from jaxenc.checkpoint.verify import CHECKSUMS
from jaxenc.errors import UserError
from jaxenc.files import one_at_a_time, user_errors


def fetched(url: str, check: bool, what: str, step: int = 0, frozen: bool = False) -> Path:
    """The folder on this machine with the files of the step that a URL names: itself, `step` of a run, or its newest that verifies.

    What is here already with the right sha256 is not downloaded again. A damaged step is left where it is. check: as in
    `restore.choose`; what: the name of the URL in messages; frozen: also fetch the copy of a run's teacher, beside checkpoints/. Raises
    UserError where there is no such step or none that verifies.
    """
    folder = storage.folder(url)
    names, wanted = folder.names(), step or None
    if CHECKSUMS in names:
        above, _, last = folder.url.rpartition("/")
        published, wanted = Published(storage.folder(above)), int(last) if last.isdigit() else -1
    else:
        published = Published(folder.below("checkpoints") if "checkpoints" in names else folder)
    run = published.folder.url.removesuffix("/checkpoints")
    root = storage.cache() / "models" / storage.key(run)
    directory = root / "checkpoints"
    with one_at_a_time(root, storage.HERE), user_errors(root, storage.HERE):
        if frozen:
            copies = storage.folder(run).below("frozen")
            for name in copies.names():
                Published(copies.below(name)).newest(root / "frozen" / name, check, aside=False)
        newest = wanted is None
        found = published.newest(directory, check, aside=False) if newest else _one(published, wanted, directory, check, what)
    if found is None:
        raise UserError("holds no valid checkpoint", f"{what} {url}", "name a run directory or one of its checkpoints")
    return directory / str(found)


def _one(published: Published, step: int, directory: Path, check: bool, what: str) -> int:
    where = f"{what} {published.folder.url}/{step}"
    if step not in (there := published.steps()):
        raise UserError("no such checkpoint", where, f"use one of {', '.join(map(str, there))}" if there else f"choose another {what}")
    if problems := published.fetch(step, directory, check):
        raise UserError(problems[0], where, "name another step")
    return step
