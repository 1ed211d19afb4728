"""Where the steps of a `Manager` go besides its directory: nowhere, or to a URL."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import jax

from jaxenc import storage
from jaxenc.checkpoint import verify
from jaxenc.checkpoint.arrays import is_part
from jaxenc.checkpoint.published import Published
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import Entries


class Nowhere:
    """The directory is the run's own, and all processes share it."""

    apart = False

    def local(self, config: CheckpointConfig) -> CheckpointConfig:
        """What stays in the directory."""
        return config

    def check(self) -> None:
        """Raises UserError where this process may no longer write."""

    def send_part(self, step: int, folder: Path) -> None:
        """Called in every process once its arrays of a step are in `folder`."""

    def others(self, step: int) -> Entries:
        """The checksums of the files that only other processes have; called once for a step, in process 0."""
        return {}

    def send(self, step: int, folder: Path) -> None:
        """Called in process 0 once `folder` is complete, its CHECKSUMS.json included."""

    def complete(self, step: int, folder: Path) -> None:
        """Called in process 0 once `folder` has its own name: makes the step appear."""

    def retain(self, config: CheckpointConfig, saved: int) -> None:
        """Called in process 0 after `complete`: deletes the steps that are not kept."""

    def advice(self, directory: Path) -> str:
        """What to do where `directory` cannot be written."""
        return f"free space or fix the permissions of {directory}"

    def settle(self, directory: Path, step: int, folder: Path) -> None:
        """Called in every other process at the end: `folder` becomes what it keeps of the step in `directory`."""


class AtUrl(Nowhere):
    """The directory is a copy of what is at a URL, and each of several processes has one of its own.

    before: called before a step appears, to upload what else belongs to it and to ask whether this process may still write; check: raises
    UserError where it is known that it may not, and asks nobody.
    """

    def __init__(self, published: Published, before: Callable[[], None], check: Callable[[], None]) -> None:
        self._published, self._before, self._check = published, before, check
        self.apart = jax.process_count() > 1

    def local(self, config: CheckpointConfig) -> CheckpointConfig:
        """The newest alone: the others can be downloaded."""
        return dataclasses.replace(config, keep=1, keep_every=0)

    def check(self) -> None:
        """As `Nowhere.check`."""
        self._check()

    def send_part(self, step: int, folder: Path) -> None:
        """Uploads the arrays of every process but process 0."""
        if jax.process_index():
            entries = {name: entry for name, entry in verify.checksums(folder).items() if is_part(name)}
            self._published.send(step, folder, entries)
            self._published.send_part(step, jax.process_index(), entries)

    def others(self, step: int) -> Entries:
        """As `Nowhere.others`."""
        return self._published.parts(step, jax.process_count())

    def send(self, step: int, folder: Path) -> None:
        """Uploads all that process 0 has, but CHECKSUMS.json."""
        self._published.send(step, folder, verify.files(folder))

    def complete(self, step: int, folder: Path) -> None:
        """Uploads CHECKSUMS.json."""
        self._before()
        self._published.complete(step, folder)

    def retain(self, config: CheckpointConfig, saved: int) -> None:
        """As `Nowhere.retain`."""
        self._published.retain(config, saved)

    def advice(self, directory: Path) -> str:
        """As `Nowhere.advice`; `directory` is known to nobody."""
        return f"the copy is in {storage.cache()}: {storage.HERE}"

    def settle(self, directory: Path, step: int, folder: Path) -> None:
        """Keeps the part of the newest step, of which a restart needs to download only the rest."""
        for other in directory.iterdir():
            if other != folder:
                shutil.rmtree(other)
        folder.rename(directory / str(step))
