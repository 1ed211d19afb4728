"""What earlier formats wrote, read by this version."""

from pathlib import Path

import jax
import numpy as np
import pytest

from jaxenc.checkpoint import migrate
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.restore import restore_state
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.errors import UserError


@pytest.mark.parametrize(
    "old, new",
    [
        ("moments/0/count", "moments/adam/count"),
        ("moments/0/mu/encoder/layer_00/kernel", "moments/adam/mu/encoder/layer_00/kernel"),
        ("moments/0/nu/mlm/bias", "moments/adam/nu/mlm/bias"),
        ("moments/0/sum_of_squares/mlm/bias", "moments/adagrad/sum_of_squares/mlm/bias"),
        ("params/moments/0/count", "params/moments/0/count"),
        ("moments/0/municipal/count", "moments/0/municipal/count"),
    ],
)
def test_moments_of_format_1_have_names_now(old: str, new: str) -> None:
    assert migrate.path(old, 1) == new
    assert migrate.path(old, migrate.FORMAT) == old
    assert migrate.path(new, 1) == new


NEWER, NONE = "install a newer jaxenc", "no version has written that: restore the file"


@pytest.mark.parametrize("number, advice", [(migrate.FORMAT + 1, NEWER), (0, NONE), ("2", NONE), (True, NONE), (None, NONE)])
def test_another_format_is_refused(number: object, advice: str) -> None:
    with pytest.raises(UserError, match=f"DIR/config.json: format is .*{advice}"):
        migrate.fields({"format": number, "train": {}}, "DIR/config.json")


def test_a_state_of_format_1_is_restored_under_todays_names(tmp_path: Path) -> None:
    arrays = {name: np.arange(6, dtype=np.float32).reshape(2, 3) + start for start, name in enumerate(("params", "mu", "nu"))}
    old = {"step": np.int32(3), "params": {"k": arrays["params"]}}
    old["moments"] = ({"count": np.int32(2), "mu": {"k": arrays["mu"]}, "nu": {"k": arrays["nu"]}}, {})
    with Manager(tmp_path / "checkpoints", CheckpointConfig()) as manager:
        manager.save(3, jax.tree.map(jax.numpy.asarray, old), {"config.json": b"{}"})
    new = {**old, "moments": {"adam": old["moments"][0], "decay": {}}}
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), new)
    found = restore_state(tmp_path / "checkpoints" / "3", shapes)
    assert jax.tree.all(jax.tree.map(np.array_equal, found, new))
