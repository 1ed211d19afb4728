"""Files of vectors in the layout of AllenNLP's `elmo` command (allennlp commands/elmo.py): an array `i` for the sentence in line i."""

import contextlib
import itertools
import json
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from jaxenc.data.folders import must_be_new_file
from jaxenc.errors import UserError
from jaxenc.files import npz, user_errors, written
from jaxenc.formats import hdf5

# One sentence: its text and its array.
Add = Callable[[str, np.ndarray], None]
INDEX = "sentence_to_index"
HDF5 = (".hdf5", ".h5")


def check(path: Path) -> None:
    """Raises UserError for a path that cannot be written: an existing file, a missing folder, an unknown suffix."""
    if path.suffix not in (".npz", *HDF5):
        raise UserError(f"ends in neither .npz nor {' nor '.join(HDF5)}", path, "choose such a name: the ending says the format")
    if path.suffix in HDF5:
        hdf5.library()
    must_be_new_file(path, "--out")


@contextlib.contextmanager
def writer(path: Path, more: Mapping[str, str] = types.MappingProxyType({})) -> Iterator[Add]:
    """A function that adds one sentence after another to a new file at `path`; the file appears when the block succeeds, otherwise not at
    all.

    Arrays are written immediately. At the end `sentence_to_index` gets a JSON object, as text, from each sentence to the number of its
    array; for equal sentences the last one counts, as in AllenNLP. more: {name: text} that is written too.
    """
    index, numbers = {}, itertools.count()
    opened = _hdf5 if path.suffix in HDF5 else npz
    with user_errors(path, "free some space or choose another --out"), written(path) as place, opened(place) as store:

        def add(sentence: str, array: np.ndarray) -> None:
            index[sentence] = str(next(numbers))
            store(index[sentence], array)

        yield add
        for name, text in {**more, INDEX: json.dumps(index)}.items():
            store(name, text)


@contextlib.contextmanager
def _hdf5(place: Path) -> Iterator[Callable[[str, np.ndarray | str], None]]:
    """Arrays as datasets, a text as a dataset of one."""
    h5py = hdf5.library()
    with h5py.File(place, "w") as file:

        def store(name: str, value: np.ndarray | str) -> None:
            if isinstance(value, str):
                file.create_dataset(name, data=[value], dtype=h5py.string_dtype())
            else:
                file.create_dataset(name, data=value)

        yield store
