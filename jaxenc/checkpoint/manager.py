"""Writes checkpoints in the background: a step's folder appears only when it is whole.

Everything of step N is written under `.N.tmp-save`, listed with checksums, flushed and renamed to `N`. An old step is renamed to
`.N.tmp-delete` before its files go. So a process that dies at any point leaves whole steps and names that the next one removes.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jax.errors import JaxRuntimeError

from jaxenc import tree
from jaxenc.checkpoint.arrays import Writer, by_path, quiet, reason
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import steps, write_checksums
from jaxenc.errors import Absent, UserError
from jaxenc.files import flush
from jaxenc.processes import barriers

TEMPORARY = re.compile(r"\.\d+\.tmp-(save|delete)")


class Manager:
    """Owner of one run's checkpoint directory and of the threads that write to it; close it, or use it in a `with`.

    Only process 0 writes anything but arrays. Every process makes the same calls in the same order.
    `stage` is called with the name of each stage as it ends (copied, state, files, checksums, renamed, aside), for tests that stop there.
    """

    def __init__(self, directory: Path, config: CheckpointConfig, stage: Callable[[str], None] = lambda name: None) -> None:
        """Makes the directory and removes what a killed run left half-written; UserError when that fails."""
        self._directory = Path(directory).absolute()
        self._config = config
        self._stage = stage
        self._primary = barriers.is_primary()
        if self._primary:
            self._clean()
        self._exit = ExitStack()
        self._exit.enter_context(quiet())
        self._writer = Writer()
        self._exit.callback(self._writer.close)
        self._thread = futures.ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._exit.callback(self._thread.shutdown)
        self._saving: futures.Future[None] | None = None

    def _clean(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            flush(self._directory.parent)
            for path in self._directory.iterdir():
                if TEMPORARY.fullmatch(path.name):
                    shutil.rmtree(path)
            # A folder that may be read and not written to says so now, and not when the first step is to be saved.
            probe = self._directory / ".0.tmp-save"
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            raise UserError(f"checkpoint directory {self._directory}: {error.strerror}: free space or mend its permissions") from error

    def check_room(self, state: Any) -> None:
        """Raises UserError, in process 0, where the disk has less room than one checkpoint of `state` takes before it is compressed."""
        # The others may be here before process 0 has made the directory.
        if not self._primary:
            return
        needed, free = tree.nbytes(state), shutil.disk_usage(self._directory).free
        if free < needed:
            told = f"a checkpoint takes up to {needed / 1e6:,.1f} MB and the disk has {free / 1e6:,.1f} MB"
            raise UserError(f"checkpoint directory {self._directory}: {told}: free space or choose another work directory")

    def save(self, step: int, state: Any, files: Mapping[str, bytes | Path]) -> None:
        """Starts to save `state` (any pytree of arrays) as step `step`, after the save before it has ended.

        Returns once the arrays are on the host; the caller may donate them. `files` maps a name relative to the step's folder to bytes,
        or to a folder that is copied. Raises UserError when the save before, or the start of this one, failed; Absent when another process
        did not come to it; ValueError when the step exists or two leaves have one path.
        """
        self.wait()
        if os.path.exists(self._directory / str(step)):
            raise ValueError(f"step {step} already exists in {self._directory}")
        temporary = self._directory / f".{step}.tmp-save"
        leaves = by_path(state)
        with self._failures(step):
            if self._primary:
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir()
            # Orbax begins with a barrier that has no time limit and names nobody; here all come to it together.
            barriers.barrier(f"checkpoint {step} begun")
            self._writer.start(temporary / "state", leaves)
        self._stage("copied")
        self._saving = self._thread.submit(self._finish, step, temporary, dict(files))

    def _finish(self, step: int, temporary: Path, files: dict[str, bytes | Path]) -> None:
        def commit() -> None:
            with self._failures(step):
                self._commit(step, temporary, files)
                self._retain(step)

        with self._failures(step):
            self._writer.wait()
        self._stage("state")
        # No rename before every process has written; and none goes on, or stops, before it knows how the rename went.
        barriers.barrier(f"checkpoint {step} written")
        barriers.from_primary(f"checkpoint {step} saved", commit)

    def _commit(self, step: int, temporary: Path, files: dict[str, bytes | Path]) -> None:
        for name, source in files.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                target.write_bytes(source)
            else:
                shutil.copytree(source, target)
        self._stage("files")
        write_checksums(temporary, step)
        self._stage("checksums")
        os.rename(temporary, self._directory / str(step))
        flush(self._directory)
        self._stage("renamed")

    def _retain(self, saved: int) -> None:
        """Deletes the finished steps that neither `keep` nor `keep_every` holds, never the one just saved."""
        every = self._config.keep_every
        for step in steps(self._directory)[: -self._config.keep]:
            if step != saved and not (every and step % every == 0):
                aside = self._directory / f".{step}.tmp-delete"
                os.rename(self._directory / str(step), aside)
                self._stage("aside")
                shutil.rmtree(aside)

    @contextmanager
    def _failures(self, step: int) -> Iterator[None]:
        """Makes whatever goes wrong with a save one UserError; its temporary folder is removed as far as the system lets us.

        What the end of another process brings is raised as it is: it is no bad input, so `launch/local.sh` starts all again.
        """
        try:
            yield
        except (Absent, JaxRuntimeError):
            raise
        except Exception as error:
            if self._primary:
                shutil.rmtree(self._directory / f".{step}.tmp-save", ignore_errors=True)
            mend = f"free space or mend the permissions of {self._directory}"
            raise UserError(f"checkpoint failed at step {step}: {reason(error)}: {mend}") from error

    def check(self) -> None:
        """Raises what `wait` raises of a save that has ended, once; cheap enough for every step."""
        if self._saving is not None and self._saving.done():
            self.wait()

    def wait(self) -> None:
        """Waits until the save in flight is whole on the disk; raises UserError or Absent as `save`. An interrupted wait can be repeated.

        Every 15 s a line on stderr says that the disk is awaited. There is no limit: what hangs on a disk cannot be ended from here.
        """
        saving, started = self._saving, time.monotonic()
        if saving is not None:
            while not futures.wait([saving], barriers.TELL).done:
                told = f"a checkpoint is still being written after {time.monotonic() - started:.0f} s of waiting"
                print(f"{self._directory}: {told}", file=sys.stderr, flush=True)
            self._saving = None
            saving.result()

    def close(self) -> None:
        """Waits and ends the threads; raises as `wait`."""
        with self._exit:
            self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except UserError as failure:
            if error is None:
                raise
            error.add_note(str(failure))
