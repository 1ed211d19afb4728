"""TensorFlow's checkpoint format: what TensorFlow wrote, what we wrote, and what is damaged."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.formats import tensorflow
from tests.convert import tf1
from tests.parity.cases import golden

WRITTEN = Path(__file__).parents[1] / "golden" / "tf" / "model.ckpt"


def test_a_checkpoint_that_tensorflow_wrote() -> None:
    """Every tensor bitwise; the script that made it is tests/golden/tf/make.py."""
    expected = tf1.google_names(golden("BertForPreTraining", "weights/"))
    found = tensorflow.open_tensors(WRITTEN)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        read = found[name].read()
        assert read.dtype == value.dtype and read.shape == value.shape and np.array_equal(read, value), name


def tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    numbers = {f"layer_{i}/kernel": random.normal(size=(3, i)).astype(np.float32) for i in range(50)}
    kinds = {f"kind_{kind.__name__}": np.arange(6).astype(kind).reshape(2, 3) for kind in (np.float16, np.int32, ml_dtypes.bfloat16)}
    return {**numbers, **kinds, "global_step": np.array(2**40, np.int64)}


@pytest.mark.parametrize("shards", [1, 3])
def test_every_shape_and_dtype(shards: int, tmp_path: Path) -> None:
    tf1.write(tmp_path / "model", tensors(), shards)
    found = tensorflow.open_tensors(tmp_path / "model")
    assert sorted(found) == sorted(tensors())
    for name, value in tensors().items():
        read = found[name].read()
        assert (read.dtype, read.shape) == (value.dtype, value.shape) == (found[name].dtype, found[name].shape)
        assert read.tobytes() == value.tobytes()


def test_an_index_alone_tells_names_and_shapes(tmp_path: Path) -> None:
    """Values are read when they are asked for; then the missing file is one line."""
    tf1.write(tmp_path / "model", tensors())
    (tmp_path / "model.data-00000-of-00001").unlink()
    found = tensorflow.open_tensors(tmp_path / "model")
    assert found["layer_7/kernel"].shape == (3, 7)
    with pytest.raises(UserError, match=r"model\.data-00000-of-00001: No such file"):
        found["layer_7/kernel"].read()


def test_damaged_values_are_one_line(tmp_path: Path) -> None:
    """A flipped bit and a file cut off, in the line of the tensor that it hits, the last one; the others read."""
    tf1.write(tmp_path / "model", {"first": np.zeros((4, 4), np.float32), "last": np.ones((5, 5), np.float32)})
    found, data = tensorflow.open_tensors(tmp_path / "model"), tmp_path / "model.data-00000-of-00001"
    whole = data.read_bytes()
    for content, words in ((whole[:-3] + b"\7" + whole[-2:], "last is damaged"), (whole[:-3], "last is cut off")):
        data.write_bytes(content)
        found["first"].read()
        with pytest.raises(UserError, match=words):
            found["last"].read()


def test_every_cut_and_every_flipped_byte_of_an_index_is_one_line_or_harmless(tmp_path: Path) -> None:
    """Harmless: in the footer's padding and in the block that describes nothing."""
    path = tmp_path / "model.index"
    tf1.write(tmp_path / "model", {name: tensors()[name] for name in ("layer_1/kernel", "layer_2/kernel")})
    whole = path.read_bytes()
    cuts = [whole[:size] for size in range(len(whole))]
    flips = [whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(len(whole))]
    for content in (*cuts, *flips):
        path.write_bytes(content)
        try:
            found = tensorflow.open_tensors(tmp_path / "model")
            assert [t.shape for t in found.values()] == [(3, 1), (3, 2)] and len(content) == len(whole)
        except UserError as error:
            assert "\n" not in str(error) and "not a valid TensorFlow checkpoint" in str(error)


def test_a_missing_checksum_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(UserError) as error:
        tensorflow.open_tensors(WRITTEN)
    assert "pip install 'jaxenc[tf]'" in str(error.value) and "\n" not in str(error.value)


def test_what_this_reader_does_not_take_is_one_line(tmp_path: Path) -> None:
    entry = tf1.number(1, 1) + tf1.message(2, tf1.message(2, tf1.number(1, 2))) + tf1.number(5, 8)
    index = tmp_path / "model.index"
    for value, words in (
        (entry + tf1.message(7, b""), "kernel is stored in slices"),
        (tf1.number(1, 1) + tf1.number(5, 8), "kernel has the shape"),
    ):
        index.write_bytes(tf1.table([(b"", tf1.number(1, 1)), (b"kernel", value)]))
        with pytest.raises(UserError, match=words):
            tensorflow.open_tensors(tmp_path / "model")
    slices = [(b"", tf1.number(1, 1)), (b"\0\x01kernel\0\x01\x80", entry), (b"kernel", entry + tf1.message(7, b""))]
    index.write_bytes(tf1.table(slices))
    with pytest.raises(UserError, match="kernel is stored in slices"):
        tensorflow.open_tensors(tmp_path / "model")
    index.write_bytes(tf1.table([(b"", tf1.number(2, 1))]))
    with pytest.raises(UserError, match="big-endian"):
        tensorflow.open_tensors(tmp_path / "model")
    with pytest.raises(UserError, match=r"other\.index: No such file"):
        tensorflow.open_tensors(tmp_path / "other")
