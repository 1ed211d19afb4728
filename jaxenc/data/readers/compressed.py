"""Compressed data, by its first bytes: gzip, xz, bzip2 and Zstandard, of one or more members."""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.streams import HEAD, Stream
from jaxenc.errors import UserError

# {kind: its first bytes}; a Zstandard file may start with a skippable frame.
FIRST = {
    "gzip": (b"\x1f\x8b",),
    "xz": (b"\xfd7zXZ\0",),
    "bzip2": tuple(b"BZh%d" % level for level in range(1, 10)),
    "Zstandard": (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + i]) + b"\x2a\x4d\x18" for i in range(16))),
}
SUFFIXES = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "Zstandard"}
DEEPEST = 4  # nested containers; a crafted file may unpack to itself
OUT = 1 << 18  # most bytes that one call unpacks
IN = {"Zstandard": 1 << 8}  # bytes of input at a time, few where the decoder cannot limit its output
_ZLIB = type(zlib.decompressobj())


def kind_of(head: bytes) -> str:
    """The kind of compression that the first bytes say, "" for none."""
    return next((kind for kind, first in FIRST.items() if head.startswith(first)), "")


def suffix_of(name: str) -> str:
    """The suffix of a name that says that the file is compressed, "" for none."""
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")


def unpacked(file: io.BufferedReader, name: str, counts: Counts) -> tuple[io.BufferedReader, str]:
    """`file` unpacked and `name` without the suffix, if the first bytes say that it is compressed; else both as they are.

    Other bytes after the compressed data are counted and dropped. Raises UserError, here or while reading, for damaged data and for a
    file that is not compressed although its name says so.
    """
    for _ in range(DEEPEST):
        kind, suffix = kind_of(file.peek(8)), suffix_of(name)
        if not kind and suffix:
            raise UserError(f"is not {SUFFIXES[suffix]} data, although its name ends in {suffix}", name, "rename it, or get it again")
        if not kind:
            return file, name
        file = io.BufferedReader(Stream(_members(file, name, kind, counts)), HEAD)
        name = name[: len(name) - len(suffix)] if suffix else name
    raise UserError(f"is compressed more than {DEEPEST - 1} times", name, "unpack it first")


def _decoder(kind: str, name: str) -> Callable[[], Any]:
    if kind != "Zstandard":
        return {"gzip": lambda: zlib.decompressobj(31), "xz": lzma.LZMADecompressor, "bzip2": bz2.BZ2Decompressor}[kind]
    try:
        import zstandard
    except ImportError as error:
        raise UserError("needs the package zstandard", name, "install it with `pip install 'jaxenc[data]'`") from error
    return lambda: zstandard.ZstdDecompressor().decompressobj()


def _members(file: io.BufferedReader, name: str, kind: str, counts: Counts) -> Iterator[bytes]:
    start = _decoder(kind, name)
    raw = file.read(IN.get(kind, HEAD))
    while raw.startswith(FIRST[kind]):
        decoder = start()
        while not decoder.eof:
            if not raw and getattr(decoder, "needs_input", True):
                raw = file.read(IN.get(kind, HEAD))
                if not raw:
                    raise UserError("the compressed data is damaged (it ends too early)", name, "make the file again")
            try:
                out, raw = _step(decoder, raw)
            except UserError:
                raise
            except Exception as error:  # each library raises its own
                raise UserError(f"the compressed data is damaged ({error})", name, "make the file again") from error
            if out:
                yield out
        raw = decoder.unused_data
        while not raw.strip(b"\0") and (more := file.read(HEAD)):
            raw = more
        raw = raw.lstrip(b"\0")  # padding
        raw += file.read(8) if len(raw) < 8 else b""
    while raw:
        counts.trailing_bytes += len(raw)
        raw = file.read(HEAD)


def _step(decoder: Any, raw: bytes) -> tuple[bytes, bytes]:
    """(unpacked bytes, the part of `raw` that was not consumed)."""
    if hasattr(decoder, "needs_input"):
        return decoder.decompress(raw, OUT), b""
    if isinstance(decoder, _ZLIB):
        out = decoder.decompress(raw, OUT)
        return out, decoder.unconsumed_tail
    return decoder.decompress(raw), b""
