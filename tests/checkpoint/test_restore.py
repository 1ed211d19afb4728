"""Restoring: other device counts, every disagreement at once, and which of the four starts applies."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.checkpoint.restore import Start, choose, lacking, read_json, restore_params, restore_state
from jaxenc.errors import UserError

from .conftest import abstract, make_state, save_all
from .test_manager import run, same_bits


@pytest.mark.slow
def test_one_device_to_eight_and_back_is_bitwise(tmp_path: Path) -> None:
    save_all(tmp_path, [1])
    eight = run("eight_devices.py", tmp_path, XLA_FLAGS="--xla_force_host_platform_device_count=8")
    assert eight.returncode == 0, eight.stderr
    state = make_state(1)
    assert same_bits(state, restore_state(tmp_path / "2", abstract(state)))


def test_every_disagreement_is_reported_at_once(checkpoints: Path) -> None:
    wanted = abstract(make_state(2))
    kernel = wanted["params"]["encoder"].pop("kernel")
    wanted["params"]["encoder"]["bias"] = jax.ShapeDtypeStruct((9,), jnp.float32)
    wanted["params"]["head"]["kernel"] = jax.ShapeDtypeStruct((8, 5), jnp.bfloat16)
    wanted["params"]["new"] = kernel
    with pytest.raises(UserError) as caught:
        restore_state(checkpoints / "2", wanted)
    message = str(caught.value)
    assert "params/encoder/kernel is only in the checkpoint" in message
    assert "params/new is not in the checkpoint" in message
    assert "params/encoder/bias is float32[8] in the checkpoint, float32[9] in this run" in message
    assert "params/head/kernel is float32[8, 5] in the checkpoint, bfloat16[8, 5] in this run" in message
    assert message.count(";") == 4 and "\n" not in message


def test_a_missing_moment_is_a_disagreement(checkpoints: Path) -> None:
    wanted = abstract(make_state(2))
    with pytest.raises(UserError, match="moments/1/count is only in the checkpoint"):
        restore_state(checkpoints / "2", {**wanted, "moments": ()})


def test_parameters_alone_wherever_they_were_kept(checkpoints: Path) -> None:
    state = make_state(2)
    wanted = abstract({"encoder": state["params"]["encoder"], "embed": state["frozen"]["embed"]})
    found = restore_params(checkpoints / "2", wanted)
    assert same_bits(found, {"encoder": state["params"]["encoder"], "embed": state["frozen"]["embed"]})
    with pytest.raises(UserError, match="span/kernel is not in the checkpoint"):
        restore_params(checkpoints / "2", {**wanted, "span": {"kernel": jax.ShapeDtypeStruct((8, 2), jnp.float32)}})


def test_branches_that_a_checkpoint_lacks(checkpoints: Path) -> None:
    """Trained or frozen, one leaf is enough to be there."""
    assert lacking(checkpoints / "2", ("span", "encoder", "embed", "head", "kernel")) == ("span", "kernel")


def test_without_a_sharding_an_array_goes_to_the_first_device(checkpoints: Path) -> None:
    found = restore_params(checkpoints / "2", {"encoder": {"bias": jax.ShapeDtypeStruct((8,), jnp.float32)}})
    assert found["encoder"]["bias"].devices() == {jax.devices()[0]}
    np.testing.assert_array_equal(found["encoder"]["bias"], make_state(2)["params"]["encoder"]["bias"])


def test_unreadable_arrays_are_one_line(checkpoints: Path) -> None:
    for path in (checkpoints / "2/state").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(UserError, match="cannot be read .*checkpoint.verify=true"):
        restore_state(checkpoints / "2", abstract(make_state(2)))


def test_the_order_of_the_four_starts(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine/checkpoints", tmp_path / "other/checkpoints"
    save_all(other, [3, 4])
    assert choose(mine, "", "", True) == Start("fresh", None, 0)
    assert choose(mine, "", str(tmp_path / "other"), True) == Start("init", other / "4", 0)
    assert choose(mine, str(tmp_path / "other"), str(tmp_path / "other"), True) == Start("continue", other / "4", 4)
    assert choose(mine, str(other / "3"), "", True) == Start("continue", other / "3", 3)
    assert choose(mine, str(other), "", True) == Start("continue", other / "4", 4)
    save_all(mine, [1])
    assert choose(mine, str(tmp_path / "other"), "", True) == Start("resume", mine / "1", 1)


def test_a_named_start_that_is_missing_empty_or_damaged_is_refused(checkpoints: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (checkpoints / "2/config.json").unlink()
    with pytest.raises(UserError, match="--init-from .*nowhere: not a folder"):
        choose(tmp_path / "new", "", str(tmp_path / "nowhere"), True)
    with pytest.raises(UserError, match="--continue-from .*empty: holds no valid checkpoint"):
        choose(tmp_path / "new", str(tmp_path / "empty"), "", True)
    with pytest.raises(UserError, match="--init-from .*config.json is missing"):
        choose(tmp_path / "new", "", str(checkpoints / "2"), True)


def test_a_run_without_one_whole_step_does_not_begin_anew(checkpoints: Path) -> None:
    """Neither by itself, nor from another run, nor when it is started once more: weeks of training may be in what is set aside."""
    saved = sorted(path.name for path in checkpoints.iterdir())
    for name in saved:
        (checkpoints / name / "config.json").unlink()
    for other in ("", str(checkpoints / f"{saved[0]}.bad-1")):
        with pytest.raises(UserError, match=rf"no checkpoint of this run is whole \(set aside: {saved[0]}.bad-1"):
            choose(checkpoints, other, "", True)
    assert sorted(path.name for path in checkpoints.iterdir()) == [f"{name}.bad-1" for name in saved]


def test_json_of_a_step(checkpoints: Path) -> None:
    assert read_json(checkpoints / "2", "config.json") == {"a": 1}
    with pytest.raises(UserError, match="manifest.json: No such file or directory; name another step"):
        read_json(checkpoints / "2", "manifest.json")
