"""The checksum, against published values and a loop over bits."""

import numpy as np
import pytest

from jaxenc.convert import crc32c


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    "data, expected",
    [(bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E), (b"123456789", 0xE3069283), (b"", 0)],
)
def test_published_values(data: bytes, expected: int) -> None:
    """RFC 3720, appendix B.4, and the check value of the CRC catalogue."""
    assert crc32c.checksum(data) == expected


@pytest.mark.parametrize("size", [1, 3, 31, 32, 33, 100, 2_003])
def test_side_by_side_is_as_byte_by_byte(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one lane and on eight, with and without bytes left over."""
    data = np.random.default_rng(size).bytes(size)
    for lanes in (1, 8):
        monkeypatch.setattr(crc32c, "LANES", lanes)
        assert crc32c.checksum(data) == bit_by_bit(data)


def test_the_masked_form() -> None:
    """tensorflow/core/lib/hash/crc32c.h: rotated right by 15 bits, plus a constant, modulo 2^32."""
    value = 0x8A9136AA
    assert crc32c.masked(value) == ((value >> 15 | (value & 0x7FFF) << 17) + 0xA282EAD8) % 2**32
