"""TensorFlow's checkpoint format, read without TensorFlow: `PREFIX.index` names the tensors, `PREFIX.data-00000-of-00001` holds them.

The index is a LevelDB table without compression (tensorflow/core/lib/io/table.cc, tensorflow/core/util/tensor_bundle/tensor_bundle.cc)
of protocol buffers (tensorflow/core/protobuf/tensor_bundle.proto); the data files are the tensors' bytes, one after the other.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np

from jaxenc.convert.crc32c import checksum, masked
from jaxenc.data.files import user_errors
from jaxenc.errors import UserError

MAGIC = 0xDB4775248B80FB57
FOOTER, TRAILER = 48, 5
# The numbers of tensorflow/core/framework/types.proto; what is not named here (strings, resources) is no weight.
DTYPES = {1: np.float32, 2: np.float64, 3: np.int32, 9: np.int64, 14: ml_dtypes.bfloat16, 19: np.float16}
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


@dataclasses.dataclass(frozen=True)
class Stored:
    """One tensor of a checkpoint and where its bytes are. dtype: None for one that NumPy does not have."""

    name: str
    file: Path
    dtype: np.dtype | None
    shape: tuple[int, ...]
    offset: int
    size: int
    crc: int

    def read(self) -> np.ndarray:
        """The values. Raises UserError naming the tensor when its file is missing or too short, or the checksum differs."""
        with user_errors(self.file, "copy the checkpoint again, with all its data files"), self.file.open("rb") as file:
            file.seek(self.offset)
            raw = file.read(self.size)
        if len(raw) != self.size or masked(checksum(raw)) != self.crc:
            raise UserError(f"{self.file}: {self.name} is {_damage(raw, self.size)}: copy the checkpoint again")
        return np.frombuffer(raw, self.dtype).reshape(self.shape)


def read_index(prefix: Path) -> dict[str, Stored]:
    """{name: tensor} of a checkpoint, sorted by name; reads no values.

    Raises UserError when the index is missing, damaged or of another format, or a tensor is stored in slices.
    """
    path = Path(f"{prefix}.index")
    with user_errors(path, "name the prefix that PREFIX.index and PREFIX.data-00000-of-00001 share"):
        content = path.read_bytes()
    try:
        records = list(_records(content))
        if not records or records[0][0]:
            raise ValueError("it has no header")
        header = _fields(records[0][1])
        if header.get(2):
            raise ValueError("big-endian numbers")
        return {name.decode(): _stored(prefix, name.decode(), _fields(value), header.get(1, 1)) for name, value in records[1:]}
    except (ValueError, IndexError, TypeError) as error:
        raise UserError(f"{path}: not a sound TensorFlow checkpoint ({error}): copy it again") from error


def _stored(prefix: Path, name: str, entry: dict, shards: int) -> Stored:
    if 7 in entry:
        raise UserError(f"{prefix}.index: {name} is stored in slices: save the checkpoint with whole variables")
    dims = [_fields(value).get(1, 0) for field, value in _pairs(entry.get(2, b"")) if field == 2]
    kind = DTYPES.get(entry.get(1, 0))
    dtype = None if kind is None else np.dtype(kind)
    size = entry.get(5, 0)
    if dtype is not None and size != dtype.itemsize * int(np.prod(dims, dtype=object)):
        raise ValueError(f"{name} has the shape {dims} and {size} bytes")
    file = Path(f"{prefix}.data-{entry.get(3, 0):05d}-of-{shards:05d}")
    return Stored(name, file, dtype, tuple(dims), entry.get(4, 0), size, entry.get(6, 0))


def _records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of a table: the footer points to the block of blocks, which points to the blocks."""
    footer = content[-FOOTER:]
    if len(footer) != FOOTER or int.from_bytes(footer[-8:], "little") != MAGIC:
        raise ValueError("it does not end as one")
    _, _, at = _handle(footer, 0)
    start, size, _ = _handle(footer, at)
    for _, value in _block(content, start, size):
        yield from _block(content, *_handle(value, 0)[:2])


def _block(content: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of one block; a key repeats the first bytes of the one before it."""
    block, trailer = content[start : start + size], content[start + size : start + size + TRAILER]
    if len(block) != size or len(trailer) != TRAILER or masked(checksum(block + trailer[:1])) != int.from_bytes(trailer[1:], "little"):
        raise ValueError(f"the block at byte {start} is damaged")
    if trailer[0]:
        raise ValueError("it is compressed, which TensorFlow never does")
    restarts = int.from_bytes(block[-4:], "little")
    at, end, key = 0, size - 4 * (restarts + 1), b""
    while at < end:
        shared, at = _varint(block, at)
        fresh, at = _varint(block, at)
        length, at = _varint(block, at)
        key = key[:shared] + block[at : at + fresh]
        yield key, block[at + fresh : at + fresh + length]
        at += fresh + length


def _handle(data: bytes, at: int) -> tuple[int, int, int]:
    """(start, size) of a block and where the next handle begins."""
    start, at = _varint(data, at)
    size, at = _varint(data, at)
    return start, size, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _pairs(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field, value) of a protocol buffer: whole numbers, or bytes for a text or a message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == VARINT:
            value, at = _varint(message, at)
        else:
            sizes = {FIXED64: 8, FIXED32: 4}
            size, at = (sizes[tag & 7], at) if tag & 7 in sizes else _varint(message, at)
            value, at = message[at : at + size], at + size
            value = int.from_bytes(value, "little") if tag & 7 in sizes else value
        yield tag >> 3, value


def _fields(message: bytes) -> dict[int, int | bytes]:
    return dict(_pairs(message))


def _damage(raw: bytes, size: int) -> str:
    return f"cut off ({len(raw):,} of {size:,} bytes)" if len(raw) < size else "damaged (its checksum differs)"
