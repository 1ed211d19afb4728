"""What a `Manager` does with a step besides writing it to its directory: nothing, or the upload to a URL."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import jax

from jaxenc import cache, storage
from jaxenc.checkpoint import verify
from jaxenc.checkpoint.arrays import is_part
from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import Entries


class NoUpload:
    """The directory is the run's own, and all processes share it.

    per_process: whether each of several processes has a directory of its own.
    """

    per_process = False

    def local(self, config: CheckpointConfig) -> CheckpointConfig:
        """Which steps stay in the directory."""
        return config

    def check(self) -> None:
        """Raises UserError where this process may no longer write."""

    def send_part(self, step: int, folder: Path) -> None:
        """Called in every process once its arrays of a step are in `folder`."""

    def others(self, step: int) -> Entries:
        """The checksums of the files that only other processes have; called in process 0, once for a step."""
        return {}

    def send(self, step: int, folder: Path) -> None:
        """Called in process 0 once `folder` is complete, its CHECKSUMS.json included."""

    def complete(self, step: int, folder: Path) -> None:
        """Called in process 0 once `folder` has its final name: makes the step visible at the URL."""

    def retain(self, config: CheckpointConfig, saved: int) -> None:
        """Called in process 0 after `complete`: deletes the steps that are not kept."""

    def advice(self, directory: Path) -> str:
        """What to do where `directory` cannot be written."""
        return f"free space or fix the permissions of {directory}"

    def keep_part(self, directory: Path, step: int, folder: Path) -> None:
        """Called in every other process at the end: `folder`, its part of the step, replaces what it has in `directory`."""


class Upload(NoUpload):
    """The directory is a copy of a run's at a URL, and each of several processes has a copy of its own.

    before: called before a step becomes visible, to upload the files that belong to it and to ask whether this process still holds the
    lease. check: raises UserError where this process knows that it has lost the lease; sends no request.
    """

    def __init__(self, remote: RemoteSteps, before: Callable[[], None], check: Callable[[], None]) -> None:
        self._remote, self._before, self._check = remote, before, check
        self.per_process = jax.process_count() > 1

    def local(self, config: CheckpointConfig) -> CheckpointConfig:
        """The newest alone: the others can be downloaded."""
        return dataclasses.replace(config, keep=1, keep_every=0)

    def check(self) -> None:
        """As `NoUpload.check`."""
        self._check()

    def send_part(self, step: int, folder: Path) -> None:
        """Uploads the arrays of every process but process 0."""
        if jax.process_index():
            entries = {name: entry for name, entry in verify.checksums(folder).items() if is_part(name)}
            self._remote.send(step, folder, entries)
            self._remote.send_part(step, jax.process_index(), entries)

    def others(self, step: int) -> Entries:
        """As `NoUpload.others`."""
        return self._remote.parts(step, jax.process_count())

    def send(self, step: int, folder: Path) -> None:
        """Uploads every file of process 0 but CHECKSUMS.json."""
        self._remote.send(step, folder, verify.files(folder))

    def complete(self, step: int, folder: Path) -> None:
        """Uploads CHECKSUMS.json."""
        self._before()
        self._remote.complete(step, folder)

    def retain(self, config: CheckpointConfig, saved: int) -> None:
        """As `NoUpload.retain`."""
        self._remote.retain(config, saved)

    def advice(self, directory: Path) -> str:
        """As `NoUpload.advice`; `directory` is a copy that the user does not know."""
        return f"the copy is in {cache.root()}: {storage.HERE}"

    def keep_part(self, directory: Path, step: int, folder: Path) -> None:
        """As `NoUpload.keep_part`: a restart then downloads only the rest of the step."""
        for other in directory.iterdir():
            if other != folder:
                shutil.rmtree(other)
        folder.rename(directory / str(step))
