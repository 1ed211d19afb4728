"""Processes that a test starts. However the test ends, they are ended, and its error says what each of them printed."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO


class Process(subprocess.Popen):
    """Owner of a process: leaving its `with` kills it where it still runs, and notes in the error what it had said. Popen's own waits for
    it, for ever where it hangs."""

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.poll() is None:
            self.kill()
        self.wait()
        if error is not None:
            said = [_written(stream) for stream in (self.stdout, self.stderr) if stream is not None and not stream.closed]
            error.add_note(f"process {self.pid} ended with {self.returncode} and had said:\n{''.join(said)}")
        super().__exit__(kind, error, trace)


def _written(stream: IO) -> str:
    """What is in a pipe by now; a child of the process that is gone may keep it open."""
    os.set_blocking(stream.fileno(), False)
    with contextlib.suppress(TypeError, BlockingIOError):  # a text stream's way to say that there is nothing
        return str(stream.read() or "")
    return ""


@dataclass(frozen=True)
class Done:
    """A process that has ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str


def together(commands: Sequence[tuple[Sequence[str], Mapping[str, str]]], limit: float = 120, code: int = 0) -> list[Done]:
    """Runs all `commands`, each with variables beside those of this process, at a time, and returns once all have ended with `code`.

    AssertionError, with all that they wrote, where one ends otherwise or one still runs after `limit` seconds; they are killed then.
    """
    end = time.monotonic() + limit
    with contextlib.ExitStack() as owned:
        file = lambda: owned.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
        written = [(file(), file()) for _ in commands]
        processes = [
            owned.enter_context(Process(command, stdout=out, stderr=err, env={**os.environ, **more}))
            for (command, more), (out, err) in zip(commands, written, strict=True)
        ]
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0))
        codes = [process.poll() for process in processes]
        for process in processes:
            process.kill()
            process.wait()
        for files in written:
            for one in files:
                one.seek(0)
        done = [Done(process.returncode, out.read(), err.read()) for process, (out, err) in zip(processes, written, strict=True)]
    ended = [f"process {n}: {'still ran' if codes[n] is None else codes[n]}\n{one.out}{one.err}" for n, one in enumerate(done)]
    assert codes == [code] * len(done), f"after at most {limit} s:\n" + "\n".join(ended)
    return done


@contextlib.contextmanager
def reserved() -> Iterator[str]:
    """HOST:PORT on loopback that nobody else gets in the block: a socket stays bound there and does not listen. A port that was free a
    moment ago may be that of another test's connection when it is used."""
    with socket.socket() as held:
        # Who listens there with these two, as gRPC does, is let in.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"
