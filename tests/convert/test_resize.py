"""Vocabulary rows of a trained model, against NumPy."""

import numpy as np
import pytest

from jaxenc import tree
from jaxenc.convert.resize import resized
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.count import parameter_count
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run
from tests import tiny

OTHERS = ("mlm/bias",)
VOCABULARY = ("embeddings/token/table", *OTHERS)


def model(size: int) -> dict:
    """Parameters of a tiny masked language model of `size` tokens."""
    config = Run(objective=MlmConfig(), model=BertConfig(vocab_size=size, width=8, layers=1, heads=2, feed_forward=16, positions=8))
    return tiny.drawn(config)


@pytest.mark.parametrize(
    "rows, old, new", [(100, 100, 107), (100, 100, 128), (100, 100, 129), (128, 128, 300), (100, 90, 97), (100, 90, 100), (128, 120, 130)]
)
def test_old_rows_stay_and_new_ones_are_their_mean(rows: int, old: int, new: int) -> None:
    """Grown within 128 rows, up to them and across them; R13: into some of the spare rows, all of them and beyond them. Spare rows that are
    left and all other leaves bitwise, padding rows zero."""
    params, larger = model(rows), max(rows, new)
    got = resized(params, rows, old, new, OTHERS)
    others = lambda params: tree.from_leaves((path, leaf) for path, leaf in tree.leaves(params) if path not in VOCABULARY)
    tiny.assert_bitwise(others(got), others(params))
    before, after = dict(tree.leaves(params)), dict(tree.leaves(got))
    for path in VOCABULARY:
        leaf = np.asarray(after[path])
        assert leaf.dtype == np.float32 and len(leaf) == {107: 128, 128: 128, 129: 256, 300: 384, 97: 128, 100: 128, 130: 256}[new]
        assert leaf[:old].tobytes() == before[path][:old].tobytes() and leaf[new:larger].tobytes() == before[path][new:rows].tobytes()
        mean = sum(np.float64(row) for row in before[path][:old]) / old
        assert not leaf[larger:].any() and np.abs(leaf[old:new] - mean).max() <= 1e-6
    assert parameter_count(got, larger, OTHERS) - parameter_count(params, rows, OTHERS) == (larger - rows) * 9


def test_the_wrong_number_of_rows_is_noticed() -> None:
    with pytest.raises(ValueError, match="token/table has 128 rows"):
        resized(model(100), 200, 200, 210, OTHERS)


def test_a_resized_tree_is_that_of_the_larger_model() -> None:
    """Names, shapes and dtypes of a fresh model of the new size."""
    kinds = lambda params: {path: (leaf.shape, str(leaf.dtype)) for path, leaf in tree.leaves(params)}
    assert kinds(resized(model(100), 100, 100, 140, OTHERS)) == kinds(model(140))
