"""HDF5 files of tensors: read with distrust, written bit for bit. h5py does the work and is imported where it is needed."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jaxenc.errors import UserError
from jaxenc.files import written
from jaxenc.formats.tensor import AGAIN, Tensor, contiguous

DEEPEST = 16
# deflate cannot shrink bytes to less than a thousandth.
MOST_PACKED = 1100


def library() -> ModuleType:
    """h5py. Raises UserError where it is not installed."""
    try:
        import h5py
    except ImportError as error:
        raise UserError("HDF5 files are read and written with h5py", fix="install it with `pip install 'jaxenc[hdf5]'`") from error
    return h5py


def open_tensors(path: Path) -> dict[str, Tensor]:
    """{name with its groups, such as `CNN/W_cnn_0`: Tensor} of one HDF5 file, sorted by name; reads no values.

    Raises UserError for a file that is damaged, that points outside of itself, or whose arrays cannot be as large as they say: that is
    checked before memory is asked for. `read` does where the values cannot be read.
    """
    h5py, out = library(), {}
    with _sound(path), h5py.File(path, "r") as file:
        for name, dataset in _datasets(h5py, file, path, "", 0):
            _check_size(dataset, name, path)
            out[name] = Tensor(name, dataset.shape, dataset.dtype, functools.partial(_values, path, name))
    return dict(sorted(out.items()))


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """A new file of `arrays` under their names, `/` making groups; whole or not at all."""
    h5py = library()
    with written(path) as place, h5py.File(place, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=contiguous(array))


@contextlib.contextmanager
def _sound(path: Path) -> Iterator[None]:
    """h5py's errors, which may be of several kinds, in one line."""
    if not path.is_file():
        raise UserError("no such file", path, "name one that is there")
    try:
        yield
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"not a valid HDF5 file ({why})", path, AGAIN) from error


def _datasets(h5py: ModuleType, group: Any, path: Path, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """(name, dataset) of everything in `group`. A soft or external link could name any file of this machine, so none is followed."""
    if depth > DEEPEST:
        raise UserError(f"{prefix} is {depth} groups deep, or contains itself", path, AGAIN)
    for key in group:
        name = prefix + key
        if not isinstance(group.get(key, getlink=True), h5py.HardLink):
            raise UserError(f"{name} is a link to elsewhere, which is not followed", path, AGAIN)
        item = group[key]
        if isinstance(item, h5py.Group):
            yield from _datasets(h5py, item, path, f"{name}/", depth + 1)
        elif isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise UserError(f"{name} keeps its values in another file, which is not opened", path, AGAIN)
            yield name, item


def _check_size(dataset: Any, name: str, path: Path) -> None:
    """UserError where the bytes that a dataset claims cannot be those that the file holds for it."""
    if dataset.shape is None or dataset.dtype.hasobject:
        raise UserError(f"{name} holds no numbers", path, AGAIN)
    wanted, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
    most = stored * (MOST_PACKED if dataset.id.get_create_plist().get_nfilters() else 1)
    if wanted > most or stored > path.stat().st_size:
        raise UserError(f"{name} {dataset.shape} takes {wanted:,} bytes and the file holds {stored:,} of it", path, AGAIN)


def _values(path: Path, name: str) -> np.ndarray:
    with _sound(path), library().File(path, "r") as file:
        return file[name][()]
