"""HDF5 files: what is written is what is read, and what a file may not do."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.formats import hdf5


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {"a": random.standard_normal((3, 4), np.float32), "deep/er/b": random.standard_normal(5, np.float32).T, "none": np.zeros((2, 0))}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    """Bit for bit, NaN and a transposed view too; the folder holds nothing else."""
    wanted = arrays() | {"odd": np.array([np.nan, -0.0], np.float32), "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T}
    hdf5.write(tmp_path / "x.hdf5", wanted)
    found = hdf5.open_tensors(tmp_path / "x.hdf5")
    assert list(found) == sorted(wanted) and [path.name for path in tmp_path.iterdir()] == ["x.hdf5"]
    for name, tensor in found.items():
        assert (tensor.shape, tensor.dtype) == (wanted[name].shape, wanted[name].dtype)
        assert tensor.read().tobytes() == np.ascontiguousarray(wanted[name]).tobytes()


def test_compressed_arrays_are_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("a", data=np.zeros((1000, 1000), np.float32), compression="gzip")
    assert hdf5.open_tensors(tmp_path / "x.hdf5")["a"].read().shape == (1000, 1000)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        hdf5.write(tmp_path / "x.hdf5", {"a": np.zeros(3), "b": np.array([object()])})
    assert not any(tmp_path.iterdir())


def never_filled(file: h5py.File, folder: Path) -> None:
    file.create_dataset("w", (1 << 24, 1 << 20), "f4", chunks=(1, 1 << 20))


def packed_too_well(file: h5py.File, folder: Path) -> None:
    file.create_dataset("w", (1 << 24, 1 << 20), "f4", chunks=(1, 1 << 20), compression="gzip")


def of_objects(file: h5py.File, folder: Path) -> None:
    file.create_dataset("w", data=["text"], dtype=h5py.string_dtype())


def empty(file: h5py.File, folder: Path) -> None:
    file["w"] = h5py.Empty("f4")


def elsewhere(file: h5py.File, folder: Path) -> None:
    hdf5.write(folder / "other.hdf5", {"secret": np.zeros(2)})
    file["w"] = h5py.ExternalLink("other.hdf5", "secret")


def soft(file: h5py.File, folder: Path) -> None:
    file["w"] = h5py.SoftLink("/nowhere")


def raw_file(file: h5py.File, folder: Path) -> None:
    (folder / "secret").write_bytes(bytes(8))
    file.create_dataset("w", (2,), "f4", external=[(str(folder / "secret"), 0, 8)])


def virtual(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((2,), "f4")
    layout[:] = h5py.VirtualSource("other.hdf5", "secret", (2,))
    file.create_virtual_dataset("w", layout)


def in_itself(file: h5py.File, folder: Path) -> None:
    group = file.create_group("w")
    group["w"] = group


@pytest.mark.parametrize(
    "made, words",
    [
        (never_filled, "and the file holds 0 of it"),
        (packed_too_well, "and the file holds 0 of it"),
        (of_objects, "w holds no numbers"),
        (empty, "w holds no numbers"),
        (elsewhere, "w is a link to elsewhere"),
        (soft, "w is a link to elsewhere"),
        (raw_file, "w keeps its values in another file"),
        (virtual, "w keeps its values in another file"),
        (in_itself, "groups deep, or contains itself"),
    ],
)
def test_what_a_file_may_not_do(made, words: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        made(file, tmp_path)
    with pytest.raises(UserError, match=words) as error:
        hdf5.open_tensors(tmp_path / "x.hdf5")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"no such format" * 100])
def test_files_that_are_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.hdf5").write_bytes(content)
    with pytest.raises(UserError, match="not a valid HDF5 file") as error:
        hdf5.open_tensors(tmp_path / "x.hdf5")
    assert "\n" not in str(error.value)


def test_a_file_that_claims_more_than_it_holds(tmp_path: Path) -> None:
    """The header of a sound file, its numbers written over."""
    hdf5.write(tmp_path / "x.hdf5", {"w": np.zeros(12345, np.float32)})
    content, word = (tmp_path / "x.hdf5").read_bytes(), lambda number: number.to_bytes(8, "little")
    for was, size in ((12345, 1 << 40), (4 * 12345, 4 << 40)):
        assert word(was) in content
        content = content.replace(word(was), word(size))
    (tmp_path / "x.hdf5").write_bytes(content)
    with pytest.raises(UserError, match=r"w \(1099511627776,\) takes 4,398,046,511,104 bytes|not a valid HDF5 file"):
        hdf5.open_tensors(tmp_path / "x.hdf5")


def test_a_truncated_file_and_none_at_all(tmp_path: Path) -> None:
    hdf5.write(tmp_path / "x.hdf5", {"w": np.zeros(4096)})
    content = (tmp_path / "x.hdf5").read_bytes()
    (tmp_path / "x.hdf5").write_bytes(content[:-2048])
    with pytest.raises(UserError, match="not a valid HDF5 file"):
        hdf5.open_tensors(tmp_path / "x.hdf5")
    with pytest.raises(UserError, match="no such file"):
        hdf5.open_tensors(tmp_path / "y.hdf5")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(UserError, match=r"pip install 'jaxenc\[hdf5\]'"):
        hdf5.open_tensors(tmp_path)
