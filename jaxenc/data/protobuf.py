"""The wire format of protocol buffers, read and written without their library, whose versions exclude one another."""

import struct
from collections.abc import Iterable, Iterator

VARINT, BYTES, FLOAT = 0, 2, 5
LONGEST = 10  # bytes of a whole number: 64 bits
FIXED = {1: 8, FLOAT: 4}  # bytes of a value


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(a whole number of 7 bits a byte, lowest first; where the next value begins).

    Raises IndexError where `data` ends before it, ValueError for one of more than 64 bits.
    """
    value = 0
    for place in range(LONGEST):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError(f"a whole number of more than {LONGEST} bytes")


def pairs(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field, value) of a message in its order: whole numbers, or bytes for a text or a message; four or eight bytes are a number.

    Raises ValueError or IndexError for what is not a message.
    """
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(message, at)
        elif kind == BYTES or kind in FIXED:
            size, at = varint(message, at) if kind == BYTES else (FIXED[kind], at)
            value, at = message[at : at + size], at + size
            if at > len(message):
                raise ValueError(f"a field of {size} bytes ends after the message")
            value = value if kind == BYTES else int.from_bytes(value, "little")
        else:
            raise ValueError(f"a field of the kind {kind}")
        yield tag >> 3, value


def fields(message: bytes) -> dict[int, int | bytes]:
    """{field: value} of a message, the last value of each."""
    return dict(pairs(message))


def floating(value: int) -> float:
    """The number whose four bytes `pairs` gave as a whole one."""
    return struct.unpack("<f", value.to_bytes(4, "little"))[0]


def message(values: Iterable[tuple[int, int | float | bytes]]) -> bytes:
    """The message of (field, value) pairs: a whole number from 0 on, a float of four bytes, a text or a message."""
    out = bytearray()
    for field, value in values:
        kind = BYTES if isinstance(value, bytes) else FLOAT if isinstance(value, float) else VARINT
        out += _varint(field << 3 | kind)
        out += _varint(len(value)) + value if kind == BYTES else struct.pack("<f", value) if kind == FLOAT else _varint(value)
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
