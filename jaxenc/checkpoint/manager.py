"""Writes checkpoints in the background; the folder of a step appears only when it is complete.

Step N is written under `.N.tmp-save`, listed with checksums, flushed and renamed to `N`. An old step is renamed to `.N.tmp-delete` before
it is deleted. So a process that dies at any point leaves only complete steps and temporary folders, which the next start removes. Where the
run is at a URL, `upload` copies each step there.
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
from jaxenc.checkpoint.retention import CheckpointConfig, outlived
from jaxenc.checkpoint.upload import NoUpload
from jaxenc.checkpoint.verify import STATE, steps, write_checksums
from jaxenc.errors import Absent, UserError
from jaxenc.files import flush
from jaxenc.processes import barriers

TEMPORARY = re.compile(r"\.\d+\.tmp-(save|delete)")


class Manager:
    """Owns the checkpoint directory of a run and the threads that write to it; close it, or use it in a `with` block.

    Only process 0 writes anything but arrays. Every process makes the same calls in the same order. stage: called with the name of each
    stage when it ends (copied, state, files, checksums, sent, renamed, complete, aside), for tests that stop there. upload: what
    else is done with each step. saved: called in process 0, in the thread that writes, with each step that is complete, the seconds since
    its save began, and the bytes of its files.
    """

    def __init__(
        self,
        directory: Path,
        config: CheckpointConfig,
        stage: Callable[[str], None] = lambda name: None,
        upload: NoUpload = NoUpload(),
        saved: Callable[[int, float, int], None] = lambda step, seconds, size: None,
    ) -> None:
        """Creates the directory and removes temporary folders of a killed run. Raises UserError when that fails."""
        self._directory = Path(directory).absolute()
        self._config = config
        self._stage = stage
        self._upload = upload
        self._saved = saved
        self._primary = barriers.is_primary()
        self._owns = self._primary or upload.per_process
        if self._owns:
            self._clean()
        self._exit = ExitStack()
        self._exit.enter_context(quiet())
        self._writer = Writer(self._directory.name, upload.per_process)
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
            # Fail now, not at the first save, in a folder that is read-only.
            probe = self._directory / ".0.tmp-save"
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            raise UserError(error.strerror, f"checkpoint directory {self._directory}", "free space or fix its permissions") from error

    def check_room(self, state: Any) -> None:
        """Raises UserError, in a process that made the directory, where the disk has less space than one uncompressed checkpoint of `state`
        takes."""
        # Other processes may get here before process 0 has created the directory.
        if not self._owns:
            return
        needed, free = tree.nbytes(state), shutil.disk_usage(self._directory).free
        if free < needed:
            sizes = f"a checkpoint takes up to {needed / 1e6:,.1f} MB and the disk has {free / 1e6:,.1f} MB"
            raise UserError(sizes, f"checkpoint directory {self._directory}", "free space or choose another work directory")

    def save(self, step: int, state: Any, files: Mapping[str, bytes | Path]) -> None:
        """Waits for the previous save, then starts to save `state` (any pytree of arrays) as step `step`.

        Returns once the arrays are on the host; the caller may donate them. files: {name relative to the step's folder: bytes, or a folder
        to copy}. Raises UserError when the previous save, or the start of this one, failed; Absent when another process did not take part;
        ValueError when the step exists or two leaves have the same path.
        """
        self.wait()
        began = time.monotonic()
        if os.path.exists(self._directory / str(step)):
            raise ValueError(f"step {step} already exists in {self._directory}")
        temporary = self._directory / f".{step}.tmp-save"
        leaves = by_path(state)
        with self._failures(step):
            if self._owns:
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir()
            # Orbax starts with a barrier without a time limit, which cannot name a missing process; this one has a limit and can.
            barriers.barrier(f"checkpoint {step} begun")
            self._writer.start(temporary / STATE, leaves)
        self._stage("copied")
        self._saving = self._thread.submit(self._finish, step, temporary, dict(files), began)

    def _finish(self, step: int, temporary: Path, files: dict[str, bytes | Path], began: float) -> None:
        def commit() -> None:
            with self._failures(step):
                self._commit(step, temporary, files)
                size = sum(path.stat().st_size for path in (self._directory / str(step)).rglob("*") if path.is_file())
                self._retain(step)
                self._saved(step, time.monotonic() - began, size)

        with self._failures(step):
            self._writer.wait()
        self._stage("state")
        with self._failures(step):
            self._upload.send_part(step, temporary)
        # Rename only after every process has written; no process continues, or stops, before it knows whether the rename worked.
        barriers.barrier(f"checkpoint {step} written")
        barriers.from_primary(f"checkpoint {step} saved", commit)
        if not self._primary:
            self._upload.keep_part(self._directory, step, temporary)

    def _commit(self, step: int, temporary: Path, files: dict[str, bytes | Path]) -> None:
        for name, source in files.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                target.write_bytes(source)
            else:
                shutil.copytree(source, target)
        self._stage("files")
        write_checksums(temporary, step, self._upload.others(step))
        self._stage("checksums")
        self._upload.send(step, temporary)
        self._stage("sent")
        os.rename(temporary, self._directory / str(step))
        flush(self._directory)
        self._stage("renamed")
        self._upload.complete(step, self._directory / str(step))
        self._stage("complete")

    def _retain(self, saved: int) -> None:
        """Deletes the complete steps that the config does not keep, but never the one just saved."""
        for step in outlived(steps(self._directory), self._upload.local(self._config), saved):
            aside = self._directory / f".{step}.tmp-delete"
            os.rename(self._directory / str(step), aside)
            self._stage("aside")
            shutil.rmtree(aside)
        self._upload.retain(self._config, saved)

    @contextmanager
    def _failures(self, step: int) -> Iterator[None]:
        """Turns any failure of a save into one UserError and removes its temporary folder where possible.

        Errors caused by the end of another process are raised unchanged: they are not bad input, so `launch/local.sh` restarts all.
        """
        try:
            yield
        except (Absent, JaxRuntimeError):
            raise
        except Exception as error:
            if self._owns:
                shutil.rmtree(self._directory / f".{step}.tmp-save", ignore_errors=True)
            if isinstance(error, UserError):  # of a URL, which it names
                raise error.at(f"checkpoint failed at step {step}") from error
            raise UserError(f"checkpoint failed at step {step}: {reason(error)}", fix=self._upload.advice(self._directory)) from error

    def check(self) -> None:
        """Raises the error of a save that has ended, once, as `wait`, and UserError where another run has taken over the directory; cheap
        enough for every step."""
        self._upload.check()
        if self._saving is not None and self._saving.done():
            self.wait()

    def wait(self) -> None:
        """Waits until the current save is complete on the disk; raises UserError or Absent as `save`. An interrupted wait can be repeated.

        Prints a line to stderr every 15 s. There is no time limit, because a write that hangs on the disk cannot be cancelled from here.
        """
        saving, started = self._saving, time.monotonic()
        if saving is not None:
            while not futures.wait([saving], barriers.TELL).done:
                line = f"a checkpoint is still being written after {time.monotonic() - started:.0f} s of waiting"
                print(f"{self._directory}: {line}", file=sys.stderr, flush=True)
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
