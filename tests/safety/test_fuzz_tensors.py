"""Damaged files of tensors: one line, in bounded time and memory, and nothing outside of the folder is opened."""

import json
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc.data.protobuf import message
from jaxenc.errors import UserError
from jaxenc.formats import hdf5, tensorflow, weights
from jaxenc.formats.tensor import Tensor
from tests.convert import tf1
from tests.convert.folders import safetensors_bytes
from tests.safety.damage import Edits, altered, bounded, byte_edits, damaged, dumped, folder_of, fuzzed, json_edits

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
ARRAYS = {"a": MATRIX, "b": np.array([1.5, -2.0], np.float16), "deep/c": np.zeros((0, 4)), "d": np.array(7)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensors")


def read(tensors: dict[str, Tensor]) -> None:
    for tensor in tensors.values():
        array = tensor.read()
        assert (array.shape, array.dtype) == (tensor.shape, tensor.dtype)


def safetensors(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


SAFE = safetensors_bytes(ARRAYS)
HEADER = SAFE[8 : 8 + struct.unpack("<Q", SAFE[:8])[0]]


@fuzzed(600)
@given(edits=json_edits())
def test_headers_of_safetensors(place: Path, edits: Edits) -> None:
    header = dumped(altered(json.loads(HEADER), edits))
    folder_of(place / "safe", {"model.safetensors": safetensors(header, SAFE[8 + len(HEADER) :])})
    with bounded():
        read(weights.open_tensors(place / "safe"))


@fuzzed(600)
@given(edits=byte_edits())
def test_safetensors_byte_by_byte(place: Path, edits: Edits) -> None:
    folder_of(place / "safe", {"model.safetensors": damaged(SAFE, edits)})
    with bounded():
        read(weights.open_tensors(place / "safe"))


@fuzzed(400)
@given(edits=json_edits())
def test_indices_of_safetensors(place: Path, edits: Edits) -> None:
    """A shard lies beside its index, whatever the index says."""
    table = {"weight_map": {name: "one.safetensors" for name in ARRAYS}, "metadata": {"total_size": 1}}
    folder_of(place / "safetensors", {"one.safetensors": SAFE, "model.safetensors.index.json": dumped(altered(table, edits))})
    with bounded():
        read(weights.open_tensors(place / "safetensors"))


NUMBERS = st.sampled_from([0, 1, 2, 24, 255, 1 << 31, 1 << 40, (1 << 62) - 1, (1 << 63) - 1, 1 << 64, (1 << 70) - 1])
VALUES = NUMBERS | st.binary(max_size=8)


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[bytes, bytes]]:
    """Records of an index with sound checksums: the header and a tensor or two of any fields and shapes."""

    def fields(*numbers: int) -> bytes:
        found = draw(st.lists(st.tuples(st.sampled_from(numbers), VALUES), max_size=5))
        return message([(number, value % (1 << 70) if isinstance(value, int) else value) for number, value in found])

    records = [(b"", message([(1, draw(st.sampled_from([0, 1, 2, 1 << 40])))]))]
    for name in draw(st.lists(st.sampled_from([b"a", b"b/c", b"\n", b"\xff", b"../x", b"\0s"]), max_size=3, unique=True)):
        shape = b"".join(message([(2, message([(1, draw(VALUES))]))]) for _ in range(draw(st.integers(0, 3))))
        sound = [(1, 1), (2, shape), (4, draw(NUMBERS)), (5, draw(NUMBERS))]
        records.append((name, message(sound) + draw(st.just(b"") | st.just(fields(1, 2, 3, 4, 5, 6, 7)))))
    return sorted(records)


@fuzzed(450)
@given(records=tables())
def test_indices_of_tensorflow(place: Path, records: list[tuple[bytes, bytes]]) -> None:
    """Not a checksum is wrong, but what they protect is."""
    folder_of(place / "tf", {"model.index": tf1.table(records), "model.data-00000-of-00001": bytes(100)})
    with bounded():
        read(tensorflow.open_tensors(place / "tf" / "model"))


@fuzzed(400)
@given(edits=byte_edits())
def test_tensorflow_byte_by_byte(place: Path, edits: Edits, any_checksum: None) -> None:
    """Checksums are not compared, as if a forger had made them fit."""
    (place / "tf1").mkdir(exist_ok=True)
    tf1.write(place / "tf1" / "model", ARRAYS)
    index = place / "tf1" / "model.index"
    index.write_bytes(damaged(index.read_bytes(), edits))
    with bounded():
        read(tensorflow.open_tensors(place / "tf1" / "model"))


class Any32(int):
    """A checksum that equals every other one."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


@pytest.fixture
def any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow, "_checksum", lambda data: Any32())


@pytest.fixture(scope="module")
def hdf(place: Path) -> bytes:
    hdf5.write(place / "sound.hdf5", ARRAYS)
    with h5py.File(place / "sound.hdf5", "a") as file:
        file.create_dataset("packed", data=np.zeros((40, 40), np.float32), compression="gzip", chunks=(10, 40))
    return (place / "sound.hdf5").read_bytes()


@fuzzed(500)
@given(edits=byte_edits())
def test_hdf5(place: Path, hdf: bytes, edits: Edits) -> None:
    (place / "x.hdf5").write_bytes(damaged(hdf, edits))
    with bounded():
        read(hdf5.open_tensors(place / "x.hdf5"))


def test_a_tensor_behind_the_end_of_its_file(place: Path) -> None:
    """Nothing is asked for that the file cannot hold: an offset of 2^63 and a size of 2^40."""
    for offset, size in ((1 << 63, 4), (0, 1 << 40), (99, 4)):
        entry = message([(1, 1), (2, message([(2, message([(1, size // 4)]))])), (4, offset), (5, size)])
        folder_of(place / "far", {"m.index": tf1.table([(b"", message([(1, 1)])), (b"a", entry)]), "m.data-00000-of-00001": bytes(100)})
        with pytest.raises(UserError, match="a is cut off"):
            tensorflow.open_tensors(place / "far" / "m")["a"].read()


@pytest.mark.parametrize("repeated", [True, False])
def test_an_index_that_grows_as_it_is_read(place: Path, repeated: bool) -> None:
    """A block that is named 1,000 times, and keys longer than any name."""
    out = bytearray()
    if repeated:
        handle = tf1._append(out, [(b"x%d" % i, b"") for i in range(100)])
        handles = [(b"%d" % i, handle) for i in range(1000)]
    else:
        handles = [(b"", tf1._append(out, [(b"k" * 2000 + b"%d" % i, b"") for i in range(3)]))]
    meta, index = tf1._append(out, []), tf1._append(out, handles)
    content = bytes(out) + (meta + index).ljust(40, b"\0") + tensorflow.MAGIC.to_bytes(8, "little")
    folder_of(place / "bomb", {"m.index": content})
    with pytest.raises(UserError, match="its blocks lie over one another" if repeated else "is damaged"):
        tensorflow.open_tensors(place / "bomb" / "m")
