"""Saving: what a finished step holds, what is kept, and that a death or an error at any point leaves the steps before it."""

import asyncio
import contextlib
import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.checkpoint import arrays
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.restore import restore_state
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import newest_valid, steps, verify
from jaxenc.errors import UserError
from tests.selection import thinned

from .conftest import abstract, make_state, save_all

HERE = Path(__file__).parent


def same_bits(left: dict, right: dict) -> bool:
    assert jax.tree.structure(left) == jax.tree.structure(right)
    return all(
        a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


def run(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Runs one of this folder's scripts, without the cache of compiled programs, for what stops its saves would stop that too."""
    env = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false", "PYTHONPATH": str(HERE.parents[1]), **environment}
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_round_trip_is_bitwise_with_optimizer_state_and_empty_branches(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    (tokenizer / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    state = make_state(7)
    with Manager(tmp_path / "c", CheckpointConfig()) as manager:
        manager.save(7, state, {"config.json": b"{}", "tokenizer": tokenizer, "notes/run.txt": b"x"})
    assert same_bits(state, restore_state(tmp_path / "c/7", abstract(state)))
    assert (tmp_path / "c/7/tokenizer/vocab.txt").read_text() == "[PAD]\n[UNK]\n"
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["7"]
    assert sorted(path.name for path in (tmp_path / "c/7").iterdir()) == ["CHECKSUMS.json", "config.json", "notes", "state", "tokenizer"]


def test_arrays_may_be_donated_once_save_has_returned(tmp_path: Path) -> None:
    overwrite = jax.jit(lambda x: x * 0 - 1, donate_argnums=0)
    state = {"params": {"w": jnp.arange(1 << 20, dtype=jnp.float32)}}
    template = abstract(state)
    with Manager(tmp_path, CheckpointConfig()) as manager:
        manager.save(1, state, {"config.json": b"{}"})
        state["params"]["w"] = overwrite(state["params"]["w"]).block_until_ready()
    assert np.array_equal(restore_state(tmp_path / "1", template)["params"]["w"], np.arange(1 << 20))


def test_retention_keeps_the_newest_and_the_multiples_and_what_it_did_not_write(tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    (tmp_path / "2.bad-1").mkdir()
    save_all(tmp_path, [1, 2, 4, 5, 6, 7], CheckpointConfig(keep=2, keep_every=4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.bad-1", "3", "4", "6", "7"]


def test_the_step_just_saved_is_never_deleted(checkpoints: Path) -> None:
    with Manager(checkpoints, CheckpointConfig(keep=1)) as manager:
        manager.save(0, make_state(0), {})
    assert steps(checkpoints) == [0, 2]


def test_an_existing_step_is_refused(checkpoints: Path) -> None:
    with Manager(checkpoints, CheckpointConfig()) as manager, pytest.raises(ValueError, match="step 2 already exists"):
        manager.save(2, make_state(2), {})


def test_left_over_temporary_folders_go_and_nothing_else(checkpoints: Path) -> None:
    for name in (".3.tmp-save", ".1.tmp-delete", ".3.tmp", "3.tmp-save", ".x.tmp-save"):
        (checkpoints / name / "state").mkdir(parents=True)
    Manager(checkpoints, CheckpointConfig()).close()
    assert sorted(path.name for path in checkpoints.iterdir()) == [".3.tmp", ".x.tmp-save", "1", "2", "3.tmp-save"]


def test_a_failed_save_is_one_error_and_the_next_save_works(checkpoints: Path) -> None:
    manager = Manager(checkpoints, CheckpointConfig())
    manager.save(3, make_state(3), {"tokenizer": checkpoints / "missing"})
    with pytest.raises(UserError, match="checkpoint failed at step 3: .*missing.*; free space or fix the permissions"):
        manager.wait()
    manager.check()
    assert sorted(path.name for path in checkpoints.iterdir()) == ["1", "2"]
    (checkpoints / ".3.tmp-save/state").mkdir(parents=True)
    manager.save(3, make_state(3), {})
    manager.close()
    assert steps(checkpoints) == [1, 2, 3]


def test_check_raises_what_failed_and_a_with_block_keeps_its_own_error(checkpoints: Path) -> None:
    with pytest.raises(RuntimeError, match="training") as caught, Manager(checkpoints, CheckpointConfig()) as manager:
        manager.save(3, make_state(3), {"tokenizer": checkpoints / "missing"})
        with pytest.raises(UserError, match="step 3"):
            while True:
                manager.check()
        manager.save(4, make_state(4), {"tokenizer": checkpoints / "missing"})
        raise RuntimeError("training")
    assert "checkpoint failed at step 4" in caught.value.__notes__[0]


def test_what_nobody_awaits_of_a_failed_save_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio complains of the other arrays that failed, when their errors go; the one that was raised holds none of them."""

    def complaints() -> int:
        caplog.clear()
        loop = asyncio.new_event_loop()
        loop.create_future().set_exception(ValueError("No space left on device"))
        loop.close()
        gc.collect()
        return len(caplog.records)

    with arrays.quiet():
        assert complaints() == 0
    assert complaints() == 1
    writer = arrays.Writer("one")
    writer._orbax.close()
    writer._orbax = mock.Mock(wait_until_finished=mock.Mock(side_effect=ValueError("Failed to write [os_error_code='28']")))
    with pytest.raises(OSError, match="^No space left on device$") as raised:
        writer.wait()
    assert raised.value.__context__ is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_writer_collects_what_a_failed_save_left_and_goes_through_no_process_without_one(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[bool] = []
    writer = arrays.Writer("one")
    writer._orbax.close()
    writer._orbax = mock.Mock(wait_until_finished=mock.Mock(side_effect=ValueError("Failed to write") if fails else None))
    monkeypatch.setattr(arrays, "LAST_WRITES", 0)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    writer.start(tmp_path / "state", {"kernel": jnp.ones(3)})
    with pytest.raises(OSError) if fails else contextlib.nullcontext():
        writer.wait()
    assert len(collected) == fails
    writer.close()
    assert len(collected) == 2 * fails


def test_threads_and_the_log_filter_end_on_close(tmp_path: Path) -> None:
    before, filters = set(threading.enumerate()), len(logging.getLogger("absl").filters)
    save_all(tmp_path, [1])
    restore_state(tmp_path / "1", abstract(make_state(1)))
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(timeout=20)
    assert not [thread.name for thread in started if thread.is_alive()]
    assert len(logging.getLogger("absl").filters) == filters


STAGES = ["copied", "state", "files", "checksums", "renamed", "aside"]


@pytest.fixture(scope="module")
def killed(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each stage a directory of two steps, in which the save of a third was killed once the stage had ended."""
    folder = tmp_path_factory.mktemp("killed")
    for stage in STAGES:
        shutil.copytree(saved, folder / stage)
    result = run("killed.py", folder, JAX_ENABLE_COMPILATION_CACHE="true")
    assert sorted(result.stdout.splitlines()) == sorted(f"{stage} {-signal.SIGKILL}" for stage in STAGES), result.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_kill_at_every_stage_leaves_a_step_to_restore(killed: Path, stage: str) -> None:
    directory = killed / stage
    committed = stage in ("renamed", "aside")
    Manager(directory, CheckpointConfig(keep=2)).close()
    newest = newest_valid(directory, check=True, set_aside=True)
    assert newest == (3 if committed else 2)
    state = make_state(newest)
    assert same_bits(state, restore_state(directory / str(newest), abstract(state)))
    assert not [path.name for path in directory.iterdir() if not path.name.isdigit()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"), thinned([("size_limit", "File too large; free space"), ("read_only", "Permission denied")], "read_only")
)
def test_a_full_or_read_only_directory_is_one_line_and_harms_no_step(fault: str, words: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        save_all(directory, [1, 2])
        result = run("failing.py", directory, fault)
        directory.chmod(0o755)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("checkpoint failed at step 3: ") and result.stdout.count("\n") == 1
        assert words in result.stdout and result.stderr == ""
        assert sorted(path.name for path in directory.iterdir()) == ["1", "2"]
        assert verify(directory / "2") == []


def test_a_save_and_a_restore_write_nothing_to_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    save_all(tmp_path, [1])
    restore_state(tmp_path / "1", abstract(make_state(1)))
    assert capfd.readouterr() == ("", "")


def test_an_array_larger_than_what_may_be_in_flight_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "IN_FLIGHT", 1 << 16)
    state = {"params": {"table": jnp.arange(1 << 20, dtype=jnp.float32), "bias": jnp.ones(3)}}
    with Manager(tmp_path, CheckpointConfig()) as manager:
        manager.save(1, state, {"config.json": b"{}"})
    assert same_bits(state, restore_state(tmp_path / "1", abstract(state)))
