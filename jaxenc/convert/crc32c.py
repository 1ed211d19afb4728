"""CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of TensorFlow's files, in NumPy."""

import numpy as np

POLYNOMIAL = 0x82F63B78  # bits reversed
LANES = 1 << 17
# Four bytes that take the register from 0 to 0xFFFFFFFF, where the checksum starts; zeros before them leave it at 0.
START = bytes.fromhex("54641f64")


def checksum(data: bytes | bytearray) -> int:
    """The CRC-32C of a buffer.

    The register is linear in the data, so `LANES` parts of equal length run side by side from 0 and are joined in pairs: the left
    one is first moved on by as many zero bytes as the right one has.
    """
    raw = np.frombuffer(data, np.uint8)
    lanes = LANES if len(raw) > 4 * LANES else 1
    steps = -(-(len(raw) + len(START)) // lanes)
    laid = np.zeros(lanes * steps, np.uint8)
    laid[len(laid) - len(raw) :] = raw
    laid[len(laid) - len(raw) - len(START) : len(laid) - len(raw)] = np.frombuffer(START, np.uint8)
    register = np.zeros(lanes, np.uint32)
    for column in np.ascontiguousarray(laid.reshape(lanes, steps).T):
        register = _TABLE[(register ^ column) & 255] ^ (register >> 8)
    moved = _by_zeros(steps)
    while len(register) > 1:
        register = _apply(moved, register[::2]) ^ register[1::2]
        moved = _apply(moved, moved)
    return int(register[0]) ^ 0xFFFFFFFF


def masked(value: int) -> int:
    """The form in which TensorFlow stores a checksum beside its data (tensorflow/core/lib/hash/crc32c.h)."""
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _apply(matrix: np.ndarray, registers: np.ndarray) -> np.ndarray:
    """The 32 x 32 matrix over GF(2), column i being the u32 image of bit i, times each register."""
    out = np.zeros_like(registers)
    for bit, image in enumerate(matrix):
        out ^= (registers >> np.uint32(bit) & np.uint32(1)) * image
    return out


def _by_zeros(count: int) -> np.ndarray:
    """The matrix of `count` zero bytes."""
    power = 1 << np.arange(32, dtype=np.uint32)
    out, square = power, _TABLE[power & 255] ^ (power >> 8)
    while count:
        out = _apply(square, out) if count & 1 else out
        square, count = _apply(square, square), count >> 1
    return out


def _table() -> np.ndarray:
    out = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        out = out >> 1 ^ (out & 1) * np.uint32(POLYNOMIAL)
    return out


_TABLE = _table()
