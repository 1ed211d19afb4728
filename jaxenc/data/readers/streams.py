"""Binary files made from blocks of bytes, and the lines of binary files in blocks; in bounded memory."""

import contextlib
import io
import tempfile
from collections.abc import Iterator
from typing import IO

from jaxenc.files import user_errors

BLOCK = 1 << 20
HEAD = 1 << 16  # bytes at the start of a file that decide its kind
IN_MEMORY = 1 << 26  # bytes of a copy that is not written to the disk
CHARACTER = 4  # bytes of the longest one in UTF-8


class Stream(io.RawIOBase):
    """A binary file to be read once, made of the blocks of an iterator. Only the last read is short."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks, self._rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, target: bytearray) -> int:
        """Fills `target` as far as the blocks go and returns the number of bytes."""
        filled, view = 0, memoryview(target).cast("B")
        while filled < len(view):
            if not self._rest:
                block = next(self._blocks, None)
                if block is None:
                    break
                self._rest = memoryview(block)
                continue
            part = self._rest[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self._rest = self._rest[len(part) :]
            filled += len(part)
        return filled


@contextlib.contextmanager
def seekable(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """`file` at its start if it is seekable, else a copy of what is left of it: in memory, or if large in a temporary file (TMPDIR)."""
    if file.seekable():
        file.seek(0)
        yield file
        return
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
        with user_errors(name, "make room in the folder for temporary files, or name another one in TMPDIR"):
            while block := file.read(BLOCK):
                copy.write(block)
            copy.seek(0)
        yield copy


def line_blocks(file: IO[bytes], limit: int) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, bytes) of blocks of whole lines with their ends; the last line of a file may lack one.

    A line of more than `limit` bytes that is not whole within a block comes in several, each of more than `limit` bytes but for the last.
    Of UTF-8 no character is cut in two.
    """
    number, held, size = 1, [], 0
    while block := file.read(BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            held.append(block[:cut])
            whole = b"".join(held)
            yield number, whole
            number += whole.count(b"\n")
            held, size, block = [], 0, block[cut:]
        if block:
            held.append(block)
            size += len(block)
        if size > limit + CHARACTER:
            part = b"".join(held)
            cut = character_start(part)
            yield number, part[:cut]
            held, size = [part[cut:]], len(part) - cut
    if size:
        yield number, b"".join(held)


def character_start(raw: bytes) -> int:
    """Where the last character of `raw` starts: a byte that does not continue a UTF-8 sequence, at most three bytes before the end."""
    return next((i for i in range(len(raw) - 1, max(len(raw) - CHARACTER, 0), -1) if raw[i] & 0xC0 != 0x80), len(raw))


def unified(file: IO[bytes]) -> Iterator[bytes]:
    r"""The blocks of `file` with `\n` for each `\r\n` and each lone `\r`."""
    after = False
    while block := file.read(BLOCK):
        start = after and block.startswith(b"\n")  # its \r ended the line in the block before
        after = block.endswith(b"\r")
        yield block[start:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
