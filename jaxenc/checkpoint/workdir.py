"""The work directory of a command: the runs in it, and their checkpoints."""

import shutil
from collections.abc import Collection
from pathlib import Path

from jaxenc.checkpoint import verify
from jaxenc.checkpoint.upload import NoUpload
from jaxenc.checkpoint.verify import CHECKPOINTS
from jaxenc.errors import UserError
from jaxenc.processes import barriers


class Workdir:
    """A work directory on a disk of this machine, or on one that all machines share. It is a run directory, or holds several.

    per_process: whether each process works in a copy of its own.
    """

    per_process = False

    def __init__(self, check: bool = True) -> None:
        """check: compare every byte of a checkpoint with its checksum, as in `restore.choose`."""
        self._check = check

    def fetch(self, directory: Path) -> None:
        """Before a run starts: makes its copy `directory` equal to the run directory at the URL, with the newest step and the files that a
        start reads. Nothing to do without a URL. Every process calls it."""

    def newest(self, directory: Path) -> Path | None:
        """The folder of the newest checkpoint in a run directory, None without one; names and sizes of its files are checked, not their
        bytes. Process 0 calls it."""
        step = verify.newest_valid(directory / CHECKPOINTS, check=False, set_aside=False)
        return None if step is None else directory / CHECKPOINTS / str(step)

    def holds(self, directory: Path, step: int) -> bool:
        """Whether a run directory has a checkpoint of `step` that verifies. Process 0 calls it."""
        return not verify.verify(directory / CHECKPOINTS / str(step), contents=self._check)

    def verified(self, directory: Path, step: int) -> Path:
        """The folder of a checkpoint in a run directory. Every process calls it. Raises UserError if it does not verify."""
        folder = directory / CHECKPOINTS / str(step)

        def check() -> None:
            if problems := verify.verify(folder, contents=self._check):
                raise UserError(problems[0], f"checkpoint {folder}", "delete this run to train it again")

        barriers.from_primary("verified checkpoint", check)
        return folder

    def keep(self, directory: Path, steps: Collection[int]) -> None:
        """Deletes all checkpoints in a run directory except `steps`. Process 0 calls it."""
        for step in set(verify.steps(directory / CHECKPOINTS)) - set(steps):
            shutil.rmtree(directory / CHECKPOINTS / str(step))

    def upload(self, directory: Path) -> NoUpload:
        """The upload of the steps in a directory of checkpoints."""
        return NoUpload()

    def publish(self) -> None:
        """Uploads the files that have changed; every process may call it, and process 0 uploads."""

    def named(self, text: str) -> str:
        """`text` with the URL of the work directory instead of the path of its copy."""
        return text
