"""XLNet's two streams against transformers' XLNetLMHeadModel: any order, memory, types, padding, both directions.

Collected where torch and transformers are installed, as test_live.py.
"""

import numpy as np
import pytest

from tests import tiny
from tests.parity import ours, peer_xlnet, xlnet


@pytest.mark.parametrize("name", xlnet.SETTINGS)
def test_streams_logits_memory_and_gradients(name: str) -> None:
    """<= 1e-5 in all layers of both streams, logits and new memory, of the loss, and of all gradients as design.md says."""
    s = xlnet.SETTINGS[name]
    model, given = peer_xlnet.build(s), xlnet.rows(s)
    got, gradients = xlnet.computed(s, peer_xlnet.weights(model), given)
    wanted, slopes = peer_xlnet.theirs(s, model, given)
    assert got.keys() == wanted.keys()
    for part, value in wanted.items():
        np.testing.assert_allclose(got[part], value, rtol=ours.BOUND, atol=ours.BOUND, err_msg=part)
    tiny.assert_close(gradients, slopes, ours.BOUND)
