"""The safetensors format, in and out.

We read it ourselves. The library maps the whole file, and mapped pages stay in memory beside the arrays made from them (203 MB
for a file of 91 MB, measured), and its NumPy side knows no bfloat16 (0.8.0). The format: the length of the header, u64; the header, JSON
{name: {dtype, shape, data_offsets}}; the raw values, row by row, little endian.
"""

import functools
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxenc.errors import UserError
from jaxenc.files import json_object, user_errors
from jaxenc.formats.tensor import ADVICE, AGAIN, BFLOAT16, Tensor, as_dtype, bytes_of, contiguous, refuse_pointer

LARGEST_HEADER = 100_000_000  # bytes, the limit that the format sets
DTYPES = {
    "F64": np.dtype("float64"), "F32": np.dtype("float32"), "F16": np.dtype("float16"), "BF16": BFLOAT16,
    "I64": np.dtype("int64"), "I32": np.dtype("int32"), "I16": np.dtype("int16"), "I8": np.dtype("int8"),
    "U64": np.dtype("uint64"), "U32": np.dtype("uint32"), "U16": np.dtype("uint16"), "U8": np.dtype("uint8"), "BOOL": np.dtype("bool"),
}  # fmt: skip
NAMED = {dtype.name: dtype for dtype in DTYPES.values()}
CODES = {dtype: code for code, dtype in DTYPES.items()}


class Part(NamedTuple):
    """An entry of a header. begin, end: of its values, in bytes from the end of the header."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    begin: int
    end: int


def open_tensors(path: Path) -> dict[str, Tensor]:
    """{name: Tensor} of one safetensors file. The header is checked against the file's size before anything is believed."""
    with user_errors(path, ADVICE), open(path, "rb") as file:
        size, first = path.stat().st_size, file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else size
        refuse_pointer(path)
        if length > min(LARGEST_HEADER, size - 8):
            raise UserError(f"not a safetensors file, or truncated: {size} bytes, and a header of {length} is announced", path, AGAIN)
        text = file.read(length)
    start, end = 8 + length, 0
    try:
        header = json_object(text)
        header.pop("__metadata__", None)
        parts = sorted((_part(name, fields) for name, fields in header.items()), key=lambda part: (part.begin, part.end))
    except ValueError as error:
        raise UserError(f"its header is damaged: {error}", path, AGAIN) from error
    for part in parts:
        if part.begin != end:
            raise UserError(f"the tensor {part.name} starts at byte {part.begin} of the data and {end} is next", path, AGAIN)
        end = part.end
    if start + end != size:
        raise UserError(f"{size} bytes, and its header describes {start + end}", path, AGAIN)
    return {part.name: Tensor(part.name, part.shape, part.dtype, functools.partial(_values, path, part, start)) for part in parts}


def _part(name: str, fields: Any) -> Part:
    """One entry of a header, read; ValueError when its fields contradict each other."""
    whole = lambda value: isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)
    dtype, shape, offsets = (fields.get(key) if isinstance(fields, dict) else None for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"the tensor {name} has the dtype {dtype!r}, which is none of {', '.join(DTYPES)}")
    if not whole(shape) or not whole(offsets) or len(offsets) != 2:
        raise ValueError(f"the tensor {name} has the shape {shape} and the offsets {offsets}")
    begin, end = offsets
    if end - begin != (wanted := bytes_of(name, shape, DTYPES[dtype])):
        raise ValueError(f"the tensor {name}, {dtype} {tuple(shape)}, takes {wanted} bytes and has {end - begin}")
    return Part(name, tuple(shape), DTYPES[dtype], begin, end)


def _values(path: Path, part: Part, start: int) -> np.ndarray:
    """The values of one tensor. start: where in the file the header ends."""
    out = np.empty(part.shape, part.dtype)
    with user_errors(path, AGAIN), open(path, "rb", buffering=0) as file:
        file.seek(start + part.begin)
        rest = memoryview(out.reshape(-1).view(np.uint8))
        while rest:
            count = file.readinto(rest)
            if not count:
                raise UserError(f"ends within the tensor {part.name}", path, AGAIN)
            rest = rest[count:]
    return out


def write(path: Path, arrays: Mapping[str, np.ndarray], dtype: np.dtype) -> None:
    """Writes `arrays` in their order as `dtype`, one at a time in memory, marked as transformers wants it (format pt).

    Raises UserError when a number is too large for `dtype`.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, array in arrays.items():
        end = offset + array.size * dtype.itemsize
        header[name] = {"dtype": CODES[dtype], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, array in arrays.items():
            file.write(contiguous(as_dtype(array, dtype, name)).reshape(-1).view(np.uint8))
