"""XLNet's two streams against the committed arrays: what tests/golden/hf/make.py had transformers compute."""

import numpy as np
import pytest

from jaxenc import tree
from tests import tiny
from tests.parity import ours, xlnet


@pytest.mark.parametrize("name", xlnet.COMMITTED)
def test_streams_logits_memory_and_gradients(name: str) -> None:
    """As test_live_xlnet.py; the rows are drawn here, the weights are committed."""
    with np.load(xlnet.FILE) as file:
        part = lambda what: {key.removeprefix(f"{name}/{what}/"): file[key] for key in file.files if key.startswith(f"{name}/{what}/")}
        weights, wanted, slopes = (part(what) for what in ("weights", "outputs", "gradients"))
    s = xlnet.SETTINGS[name]
    got, gradients = xlnet.computed(s, tree.from_leaves(weights.items()), xlnet.rows(s))
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_allclose(got[key], value, rtol=ours.BOUND, atol=ours.BOUND, err_msg=key)
    tiny.assert_close(gradients, tree.from_leaves(slopes.items()), ours.BOUND)
