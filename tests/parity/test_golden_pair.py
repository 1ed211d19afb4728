"""What transformers' two networks computed of ELECTRA's joint objective at tiny size, in float64, from samples of ours."""

from pathlib import Path

import numpy as np
import pytest

from tests import tiny
from tests.parity import ours, pair


@pytest.mark.parametrize("sharing, name", pair.COMMITTED)
def test_the_joint_loss_and_all_gradients(sharing: str, name: str, tmp_path: Path) -> None:
    """<= 1e-5 of the loss, and of the gradients as design.md says. The samples are drawn again: the same, none of them near a tie."""
    expected = pair.golden(f"{sharing}-{name}/")
    found = pair.computed(pair.golden_folder(tmp_path, sharing), pair.OBJECTIVES[name])
    assert found.model.config.model.sharing == sharing and found.gap > 1e-4
    pair.assert_all_kinds_of_places(found.example, found.fake, name)
    assert np.array_equal(found.fake, expected["fake"]), "the samples changed: if that is meant, python -m tests.golden.hf.make"
    assert abs(found.loss - expected["loss"]) <= ours.BOUND * expected["loss"]
    start = lambda network: {path.removeprefix(f"{network}/"): a for path, a in expected.items() if path.startswith(f"{network}/")}
    theirs = {network: start(network) for network in pair.NETWORKS}
    tiny.assert_close(found.gradients, pair.in_our_layout(found.model, theirs), ours.BOUND)
