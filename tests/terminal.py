"""A pseudo-terminal in the place of stdout and stderr, within this process."""

import contextlib
import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Callable, Iterator

import pytest

from jaxenc import progress

CONTROL = "\x1b"


@contextlib.contextmanager
def terminal(stdout: bool = True) -> Iterator[Callable[[], str]]:
    """stderr, and stdout unless it is left where it is, are a terminal of 80 columns in the block. The function returns, after the block,
    all that was written. Bars are drawn from their first moment on, and often."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    parts: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the other side is closed
            while part := os.read(main, 1 << 16):
                parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with pytest.MonkeyPatch.context() as patch, os.fdopen(side, "w", buffering=1, encoding="utf-8") as stream:
            patch.setenv("TERM", "xterm")
            patch.setenv("COLUMNS", "80")
            patch.setattr(progress, "YOUNG", 0.0)
            patch.setattr(progress, "PER_SECOND", 50)
            patch.setattr(sys, "stderr", stream)
            if stdout:
                patch.setattr(sys, "stdout", stream)
            yield lambda: b"".join(parts).decode()
    finally:
        reader.join()
        os.close(main)


def kept(written: str) -> list[str]:
    """The lines that a terminal shows at the end: a carriage return and the codes of rich clear lines, a cursor that goes up overwrites."""
    lines, row = [""], 0
    for part in written.replace("\r\n", "\n").replace("\x1b[2K", "\0").replace("\x1b[1A", "\1"):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\1":
            row -= 1
        elif part == "\0":
            lines[row] = ""
        elif part != "\r":
            lines[row] += part
    return [line for line in lines if line]
