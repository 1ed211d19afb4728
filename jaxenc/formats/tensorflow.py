"""TensorFlow's checkpoint format, read without TensorFlow: `PREFIX.index` names the tensors, `PREFIX.data-00000-of-00001` holds them.

The index is a LevelDB table without compression (tensorflow/core/lib/io/table.cc, tensorflow/core/util/tensor_bundle/tensor_bundle.cc)
of protocol buffers (tensorflow/core/protobuf/tensor_bundle.proto); the data files are the tensors' bytes, one after the other.
"""

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jaxenc.data.protobuf import fields, pairs, varint
from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.formats.tensor import BFLOAT16, Tensor, bytes_of, refuse_pointer

MAGIC = 0xDB4775248B80FB57
FOOTER, TRAILER = 48, 5
LONGEST_KEY = 1024  # bytes: only what is new in a key is written, so a small file could unpack to terabytes of keys
# The numbers of tensorflow/core/framework/types.proto; what is not named here (strings, resources) is not a weight.
DTYPES = {1: np.float32, 2: np.float64, 3: np.int32, 9: np.int64, 14: BFLOAT16, 19: np.float16}


def open_tensors(prefix: Path) -> dict[str, Tensor]:
    """{name: Tensor} of a checkpoint, sorted by name, without those that are not numbers (texts, resources); reads no values.

    Raises UserError when the index is missing, damaged or of another format, or a tensor is stored in slices; `read` does, naming the
    tensor, when its file is missing or too short, or the checksum differs.
    """
    path = Path(f"{prefix}.index")
    with user_errors(path, "name the prefix that PREFIX.index and PREFIX.data-00000-of-00001 share"):
        refuse_pointer(path)
        content = path.read_bytes()
    try:
        records = list(_records(content))
        if not records or records[0][0]:
            raise ValueError("it has no header")
        header = fields(records[0][1])
        if header.get(2):
            raise ValueError("big-endian numbers")
        # Keys that begin with a zero byte are slices, of a variable that has an entry of its own.
        whole = [(name, value) for name, value in records[1:] if not name.startswith(b"\0")]
        found = (_tensor(prefix, name.decode(), fields(value), header.get(1, 1)) for name, value in whole)
        return {tensor.name: tensor for tensor in found if tensor}
    except (ValueError, IndexError, TypeError) as error:
        raise UserError(f"not a valid TensorFlow checkpoint ({error})", path, "copy it again") from error


def _tensor(prefix: Path, name: str, entry: dict, shards: int) -> Tensor | None:
    """None for one that NumPy has no dtype for."""
    if 7 in entry:
        raise UserError(f"{prefix}.index: {name} is stored in slices", fix="save the checkpoint with whole variables")
    if entry.get(1, 0) not in DTYPES:
        return None
    dtype, shard, offset, size = np.dtype(DTYPES[entry[1]]), *(entry.get(field, 0) for field in (3, 4, 5))
    shape = tuple(fields(value).get(1, 0) for field, value in pairs(entry.get(2, b"")) if field == 2)
    if bytes_of(name, shape, dtype) != size or not all(type(number) is int for number in (shard, offset, size, shards)):
        raise ValueError(f"{name} has the shape {shape} and {size} bytes")
    file = Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}")
    raw = functools.partial(_bytes, file, name, offset, size, entry.get(6, 0))
    return Tensor(name, shape, dtype, lambda: np.frombuffer(raw(), dtype).reshape(shape))


def _bytes(path: Path, name: str, offset: int, size: int, crc: int) -> bytes:
    with user_errors(path, "copy the checkpoint again, with all its data files"), path.open("rb") as file:
        refuse_pointer(path)
        there = max(path.stat().st_size - offset, 0)
        if there < size:
            raise UserError(f"{name} is cut off ({there:,} of {size:,} bytes)", path, "copy the checkpoint again")
        file.seek(offset)
        raw = file.read(size)
    if _checksum(raw) != crc:
        raise UserError(f"{name} is damaged (its checksum differs)", path, "copy the checkpoint again")
    return raw


def _checksum(data: bytes) -> int:
    """CRC-32C in the form in which TensorFlow stores it beside the data (tensorflow/core/lib/hash/crc32c.h)."""
    try:
        import google_crc32c
    except ImportError as error:
        raise UserError("TensorFlow's checkpoints are read with google-crc32c", fix="install it with `pip install 'jaxenc[tf]'`") from error
    value = google_crc32c.value(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of a table: the footer points to the block of blocks, which points to the blocks."""
    footer = content[-FOOTER:]
    if len(footer) != FOOTER or int.from_bytes(footer[-8:], "little") != MAGIC:
        raise ValueError("it does not end as one")
    _, _, at = _handle(footer, 0)
    start, size, _ = _handle(footer, at)
    read = 0
    for _, value in _block(content, start, size):
        start, size, _ = _handle(value, 0)
        read += size + TRAILER
        if read > len(content):
            raise ValueError("its blocks lie over one another")
        yield from _block(content, start, size)


def _block(content: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of one block; a key repeats the first bytes of the one before it."""
    block, trailer = content[start : start + size], content[start + size : start + size + TRAILER]
    if len(block) != size or len(trailer) != TRAILER or _checksum(block + trailer[:1]) != int.from_bytes(trailer[1:], "little"):
        raise ValueError(f"the block at byte {start} is damaged")
    if trailer[0]:
        raise ValueError("it is compressed, which TensorFlow never does")
    restarts = int.from_bytes(block[-4:], "little")
    at, end, key = 0, size - 4 * (restarts + 1), b""
    while at < end:
        shared, at = varint(block, at)
        fresh, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or shared + fresh > LONGEST_KEY or at + fresh + length > end:
            raise ValueError(f"an entry at byte {start + at} is damaged")
        key = key[:shared] + block[at : at + fresh]
        yield key, block[at + fresh : at + fresh + length]
        at += fresh + length


def _handle(data: bytes, at: int) -> tuple[int, int, int]:
    """(start, size) of a block and where the next handle begins."""
    start, at = varint(data, at)
    size, at = varint(data, at)
    return start, size, at
