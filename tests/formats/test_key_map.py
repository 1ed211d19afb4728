"""The table of names: both directions, every kind of disagreement, broken tables."""

from collections.abc import Mapping

import numpy as np
import pytest

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.formats import key_map
from jaxenc.formats.key_map import IDENTITY, TRANSPOSE, Entry, Part, rows
from jaxenc.formats.tensor import Tensor

VOCAB = 130
TABLE = (
    Entry("table.weight", "token/table", rows(VOCAB), ("decoder.weight",)),
    Entry("dense.weight", "dense/kernel", TRANSPOSE),
    Entry("dense.bias", "dense/bias"),
    Entry("logits", "head", TRANSPOSE.then(rows(VOCAB))),
)
SHAPES = {"token/table": (256, 3), "dense/kernel": (3, 2), "dense/bias": (2,), "head": (256, 5)}


def theirs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shapes = {"table.weight": (VOCAB, 3), "dense.weight": (2, 3), "dense.bias": (2,), "logits": (5, VOCAB)}
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def headers(arrays: Mapping[str, np.ndarray], read: bool = True) -> dict[str, Tensor]:
    """`arrays` as a file; with read=False a file that must not be read."""

    def one(array: np.ndarray) -> np.ndarray:
        assert read, "a tensor was read before the headers were compared"
        return array

    return {name: Tensor(name, array.shape, array.dtype, lambda array=array: one(array)) for name, array in arrays.items()}


def refused(arrays: Mapping[str, np.ndarray], read: bool = False) -> str:
    with pytest.raises(UserError) as error:
        key_map.to_ours(TABLE, headers(arrays, read), SHAPES, "FILE", ("buffer",))
    assert str(error.value).startswith("FILE: ") and "\n" not in str(error.value)
    return str(error.value)


def test_each_leaf_is_turned_as_its_entry_says() -> None:
    source = theirs()
    params = key_map.to_ours(TABLE, headers(source), SHAPES, "FILE")
    found = {path: np.asarray(leaf) for path, leaf in tree.leaves(params)}
    assert {path: leaf.shape for path, leaf in found.items()} == SHAPES
    for row in range(256):
        assert (found["token/table"][row] == (source["table.weight"][row] if row < VOCAB else 0)).all()
        assert (found["head"][row] == (source["logits"][:, row] if row < VOCAB else 0)).all()
    assert all(found["dense/kernel"][i, o] == source["dense.weight"][o, i] for i in range(3) for o in range(2))
    assert (found["dense/bias"] == source["dense.bias"]).all()
    assert all(leaf.dtype == np.float32 for leaf in found.values())


def test_out_again_is_what_came_in() -> None:
    source = theirs()
    back = key_map.to_theirs(TABLE, key_map.to_ours(TABLE, headers(source), SHAPES, "FILE"))
    assert list(back) == [entry.theirs for entry in TABLE]
    assert all(back[name].tobytes() == source[name].tobytes() for name in source)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats_become_float32(dtype: str) -> None:
    source = {name: array.astype(dtype) for name, array in theirs().items()}
    params = key_map.to_ours(TABLE, headers(source), SHAPES, "FILE")
    assert np.array_equal(params["dense"]["bias"], source["dense.bias"].astype(np.float32)) and params["dense"]["bias"].dtype == np.float32


def test_a_number_too_large_for_float32_is_told() -> None:
    source = {**theirs(), "dense.bias": np.array([1.0, 1e39])}
    assert "dense.bias holds numbers too large for float32" in refused(source, read=True)


def test_every_disagreement_is_told_at_once_and_before_reading() -> None:
    source = theirs()
    del source["dense.weight"]
    source |= {"dense.bias": np.zeros(3, np.float32), "logits": np.zeros((5, VOCAB), np.int32), "surplus": np.zeros(1, np.float32)}
    said = refused(source)
    assert "missing: dense.weight;" in said and "not known: surplus;" in said
    assert "of another shape: dense.bias (3,), expected (2,);" in said and "of another dtype: logits int32" in said


def test_padded_and_turned_shapes_are_compared_as_theirs() -> None:
    assert "table.weight (256, 3), expected (130, 3)" in refused({**theirs(), "table.weight": np.zeros((256, 3), np.float32)})
    assert "dense.weight (3, 2), expected (2, 3)" in refused({**theirs(), "dense.weight": np.zeros((3, 2), np.float32)})


def test_a_long_list_is_cut_and_counted() -> None:
    said = refused({**theirs(), **{f"more.{i}": np.zeros(1, np.float32) for i in range(9)}})
    assert "more.0, more.1, more.2, more.3 and 5 more" in said and "more.4" not in said


def test_a_buffer_is_passed_over_whatever_it_holds() -> None:
    source = {**theirs(), "buffer": np.zeros(7, np.int64)}
    assert key_map.to_ours(TABLE, headers(source), SHAPES, "FILE", ("buffer",))
    with pytest.raises(UserError, match="needs no buffer"):
        key_map.to_ours(TABLE, headers(source), SHAPES, "FILE", ("buff",))


def test_a_copy_may_be_there_alone_or_as_well_and_must_agree() -> None:
    source = theirs()
    both = {**source, "decoder.weight": source["table.weight"].copy()}
    alone = {name: array for name, array in both.items() if name != "table.weight"}
    for arrays in (both, alone):
        params = key_map.to_ours(TABLE, headers(arrays), SHAPES, "FILE")
        assert (np.asarray(params["token"]["table"])[:VOCAB] == source["table.weight"]).all()
    both["decoder.weight"][VOCAB - 1, 2] += 1e-6
    assert "decoder.weight differs from table.weight: untied heads are not supported" in refused(both, read=True)
    assert "decoder.weight (1, 3), expected (130, 3)" in refused({**source, "decoder.weight": np.zeros((1, 3), np.float32)})


@pytest.mark.parametrize(
    "table, words",
    [
        (TABLE[1:], "named by no entry: token/table"),
        ((*TABLE, Entry("other", "dense/bias")), "named twice: dense/bias"),
        ((*TABLE, Entry("dense.bias", "dense/more")), "named twice: dense.bias; not a leaf of the model: dense/more"),
        ((*TABLE[:3], Entry("decoder.weight", "head", IDENTITY)), "named twice: decoder.weight"),
    ],
)
def test_a_broken_table_is_a_mistake_of_ours(table: tuple[Entry, ...], words: str) -> None:
    with pytest.raises(ValueError, match=f"key map: {words}"):
        key_map.to_ours(table, headers(theirs(), read=False), SHAPES, "FILE")
    params = tree.from_leaves((path, np.zeros(shape, np.float32)) for path, shape in SHAPES.items())
    with pytest.raises(ValueError, match=f"key map: {words}"):
        key_map.to_theirs(table, params)


@pytest.mark.parametrize("axis, transform", [(-1, IDENTITY), (0, TRANSPOSE)])
def test_leaves_that_share_a_tensor_are_its_parts(axis: int, transform: key_map.Transform) -> None:
    """Query, key and value side by side, whatever the order of the table; the parts are cut before they are turned."""
    table = tuple(Entry("packed", path, transform, part=Part(place, 3, axis)) for path, place in (("c", 2), ("a", 0), ("b", 1)))
    shapes, random = dict.fromkeys("abc", (2, 4)), np.random.default_rng(0)
    source = {"packed": random.standard_normal((2, 12) if axis else (12, 2), np.float32)}
    found = key_map.to_ours(table, headers(source), shapes, "FILE")
    for place, path in enumerate("abc"):
        some = source["packed"][:, 4 * place : 4 * place + 4] if axis else source["packed"][4 * place : 4 * place + 4].T
        np.testing.assert_array_equal(found[path], some)
    back = key_map.to_theirs(table, found)
    assert list(back) == ["packed"] and back["packed"].tobytes() == source["packed"].tobytes()
    with pytest.raises(UserError, match=r"of another shape: packed \(3, 3\), expected \((2, 12|12, 2)\)"):
        key_map.to_ours(table, headers({"packed": np.zeros((3, 3), np.float32)}, read=False), shapes, "FILE")
    with pytest.raises(UserError, match="missing: packed;"):
        key_map.to_ours(table, {}, shapes, "FILE")


@pytest.mark.parametrize(
    "parts, words",
    [
        ((Part(0, 3), Part(1, 3)), "not all of a tensor: packed"),
        ((Part(0, 2), Part(0, 2)), "not all of a tensor: packed"),
        ((Part(0, 2, 0), Part(1, 2, 1)), "not all of a tensor: packed"),
        ((Part(0, 1), None), "named twice: packed"),
    ],
)
def test_parts_that_do_not_make_a_tensor_are_a_mistake_of_ours(parts: tuple[Part | None, ...], words: str) -> None:
    table = tuple(Entry("packed", path, part=part) for path, part in zip("ab", parts, strict=True))
    with pytest.raises(ValueError, match=f"key map: {words}"):
        key_map.to_theirs(table, dict.fromkeys("ab", np.zeros((2, 2), np.float32)))
