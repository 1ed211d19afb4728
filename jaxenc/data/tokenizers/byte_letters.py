"""The letters in which byte-level BPE writes bytes, and pieces of them as a person reads them."""

import functools


@functools.cache
def letters() -> dict[str, int]:
    """{letter: byte}: a printable byte of Latin-1 is its own letter, the others are U+0100 and up, in order.

    Source: bytes_to_unicode of openai/gpt-2, src/encoder.py.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def readable(piece: str) -> str:
    r"""`piece` with its bytes decoded: `à¸Ķà¸µ` is `ดี`. A byte that is a part of a character is written `\xe0`.

    Blanks and control characters stay letters (`Ġ` is the blank), so that a piece never holds white space. A piece with another letter was
    added as text and is returned unchanged.
    """
    known = letters()
    if not all(letter in known for letter in piece):
        return piece
    raw = (letter.encode() if known[letter] <= 0x20 or known[letter] == 0x7F else bytes([known[letter]]) for letter in piece)
    return b"".join(raw).decode("utf-8", "backslashreplace")
