"""Files of tensors: sound ones value by value, bad ones byte by byte."""

import json
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.formats import safetensors, weights
from jaxenc.formats.tensor import Tensor, contiguous
from tests.convert.folders import safetensors_bytes

ARRAYS = {
    "first": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.array([1.5, -2.0], np.float16),
    "brain": np.array([[1.5], [-3.0]], jnp.bfloat16),
    "ids": np.arange(3),
    "scalar": np.array(7.0),
    "empty": np.zeros((0, 4), np.float32),
}


def write(path: Path, header: Mapping | bytes, data: bytes) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(shape: list, begin: int, end: int, dtype: str = "F32") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as error:
        for tensor in weights.open_tensors(folder).values():
            tensor.read()
    assert "\n" not in str(error.value) and str(folder) in str(error.value)
    return str(error.value)


def same(tensors: Mapping[str, Tensor], arrays: Mapping[str, np.ndarray]) -> None:
    assert tensors.keys() == arrays.keys()
    for name, array in arrays.items():
        found = tensors[name].read()
        assert (tensors[name].name, tensors[name].shape, tensors[name].dtype) == (name, array.shape, array.dtype)
        assert (found.shape, found.dtype, found.tobytes()) == (array.shape, array.dtype, array.tobytes())


def test_every_dtype_and_shape_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes(ARRAYS))
    same(weights.open_tensors(tmp_path), ARRAYS)


def test_shards_are_one_model(tmp_path: Path) -> None:
    names = list(ARRAYS)
    files = {"a.safetensors": names[:2], "b.safetensors": names[2:]}
    for file, held in files.items():
        (tmp_path / file).write_bytes(safetensors_bytes({name: ARRAYS[name] for name in held}))
    index = {"metadata": {}, "weight_map": {name: file for file, held in files.items() for name in held}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    same(weights.open_tensors(tmp_path), ARRAYS)


@pytest.mark.parametrize(
    "table, words",
    [
        ({"a": "one.safetensors", "b": "gone.safetensors"}, "gone.safetensors: missing"),
        ({"a": "one.safetensors", "b": "one.safetensors"}, "the tensor b is in model.safetensors.index.json and not in"),
        ({"a": "../one.safetensors"}, "holds no weight_map"),
        ({"a": 3}, "holds no weight_map"),
        ([], "holds no weight_map"),
        (None, "holds no weight_map"),
    ],
)
def test_an_index_that_lies(table: object, words: str, tmp_path: Path) -> None:
    (tmp_path / "one.safetensors").write_bytes(safetensors_bytes({"a": np.zeros(2, np.float32)}))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    assert words in refused(tmp_path)


def test_a_shard_with_more_than_its_index_says(tmp_path: Path) -> None:
    (tmp_path / "one.safetensors").write_bytes(safetensors_bytes({"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32)}))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one.safetensors"}}))
    assert "the tensor b is in" in refused(tmp_path) and "and not in model.safetensors.index.json" in refused(tmp_path)


def test_a_shard_with_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("x" * 300, "a\0b"):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
        assert "missing, and model.safetensors.index.json names it" in refused(tmp_path)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = safetensors_bytes({"a": np.arange(4, dtype=np.float32), "b": np.zeros(2, np.float16)})
    for size in range(len(whole)):
        (tmp_path / "model.safetensors").write_bytes(whole[:size])
        assert "model.safetensors: " in refused(tmp_path)


def test_a_file_with_bytes_behind_its_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors_bytes({"a": np.zeros(2, np.float32)}) + b"x")
    assert "its header describes" in refused(tmp_path)


def test_a_file_that_shrinks_after_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes({"a": np.zeros(2, np.float32)}))
    tensor = weights.open_tensors(tmp_path)["a"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="ends within the tensor a"):
        tensor.read()


@pytest.mark.parametrize(
    "header, words",
    [
        ({"a": entry([2], 0, 4)}, "the tensor a, F32 (2,), takes 8 bytes and has 4"),
        ({"a": entry([1 << 62, 1 << 62], 0, 8)}, "the tensor a"),
        ({"a": entry([2], 4, 12)}, "the tensor a starts at byte 4 of the data and 0 is next"),
        ({"a": entry([2], 0, 8), "b": entry([1], 4, 8)}, "the tensor b starts at byte 4 of the data and 8 is next"),
        ({"a": entry([2], 0, 8), "b": entry([1], 8, 12)}, "its header describes"),
        ({"a": entry([-2], 0, -8)}, "the tensor a has the shape [-2]"),
        ({"a": entry([2.0], 0, 8)}, "the tensor a has the shape [2.0]"),
        ({"a": entry([True], 0, 4)}, "the tensor a has the shape [True]"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "the tensor a has the shape [2] and the offsets None"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0]}}, "the offsets [0]"),
        ({"a": entry([2], 8, 0)}, "the tensor a"),
        ({"a": entry([8], 0, 8, "F8_E4M3")}, "the tensor a has the dtype 'F8_E4M3'"),
        ({"a": entry([2], 0, 8, ["F32"])}, "the tensor a has the dtype"),
        ({"a": 3}, "the tensor a has the dtype None"),
        (b'{"a": ', "its header is damaged"),
        (b"\xff\xfe\x00", "its header is damaged"),
        (b"[]", "its header is damaged: holds no JSON object"),
        (b"[" * 100_000, "its header is damaged: not JSON (maximum recursion depth"),
    ],
)
def test_a_header_that_lies(header: dict | bytes, words: str, tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", header, b"\0" * 8)
    assert words in refused(tmp_path)


@pytest.mark.parametrize("length", [10, 1 << 40, (1 << 64) - 1, 100_000_001])
def test_a_length_of_header_that_lies(length: int, tmp_path: Path) -> None:
    """Nothing is read or reserved for it: the file is as large as the lie where that is possible, all zeros."""
    with open(tmp_path / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", length) + b'{"a": {}}')
        file.truncate(120_000_000 if length > 100_000_000 else 17)
    assert f"a header of {length} is announced" in refused(tmp_path)


def test_a_pointer_of_git_lfs_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "run `git lfs pull`" in refused(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"])
def test_a_folder_in_the_place_of_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with mock.patch.dict(sys.modules, {"torch": mock.Mock()}):
        assert name in refused(tmp_path)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    assert "no model.safetensors and no pytorch_model.bin" in refused(tmp_path)


def test_a_bin_needs_torch(tmp_path: Path, without_torch: None) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    assert "pytorch_model.bin: needs torch" in refused(tmp_path)


@pytest.fixture
def without_torch() -> Callable:
    with mock.patch.dict(sys.modules, {"torch": None}):
        yield


def test_written_files_are_read_again(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    arrays = {"matrix": random.standard_normal((70, 90), np.float32).T, "row": random.standard_normal(5, np.float32)}
    for code, dtype in (("F32", np.dtype("float32")), ("F16", np.dtype("float16")), ("BF16", np.dtype(jnp.bfloat16))):
        path = tmp_path / f"{code}.safetensors"
        safetensors.write(path, arrays, dtype)
        same(safetensors.open_tensors(path), {name: np.ascontiguousarray(array).astype(dtype) for name, array in arrays.items()})
        content = path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        assert header["__metadata__"] == {"format": "pt"} and header["matrix"]["dtype"] == code and not length % 8


def test_a_number_too_large_for_the_written_dtype(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="row holds numbers too large for float16"):
        safetensors.write(tmp_path / "f", {"row": np.array([1.0, 70000.0], np.float32)}, np.dtype("float16"))


def test_an_infinity_that_was_there_is_written(tmp_path: Path) -> None:
    """Only a number that becomes infinite is too large."""
    row = np.array([1.0, np.inf, -np.inf, 65504.0], np.float32)
    safetensors.write(tmp_path / "f", {"row": row}, np.dtype("float16"))
    same(safetensors.open_tensors(tmp_path / "f"), {"row": row.astype(np.float16)})


def test_a_transposed_matrix_is_laid_out_by_rows() -> None:
    for shape in ((1, 1), (31, 33), (64, 32), (100, 7)):
        array = np.random.default_rng(0).standard_normal(shape).T
        out = contiguous(array)
        assert out.flags.c_contiguous and (out == array).all()
