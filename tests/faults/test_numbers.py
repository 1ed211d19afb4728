"""T9: numbers that are not finite: one step is skipped and counted, its rows are named, twenty stop the run, and none is ever saved."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import pytest

from jaxenc.checkpoint import arrays
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import verify
from jaxenc.errors import Diverged, UserError
from jaxenc.training import loop
from jaxenc.training import pretrain as command
from tests.faults.alone import EVERY, STEPS, Nano, newest
from tests.faults.conftest import Table
from tests.training import test_loop


def bad_at(steps: set[int]) -> Any:
    """A step that skips these: their learning works on a loss of NaN, as a gradient that overflowed leaves it."""
    compile_step = loop.compile_step

    def compiled(objective: Any, *rest: Any) -> Any:
        good, count = compile_step(objective, *rest), [0]

        def step(state: Any, batch: Any, seed: Any) -> Any:
            count[0] += 1
            if int(state.step) + 1 not in steps:
                return good(state, batch, seed)
            poisoned = jax.tree.map(lambda leaf: leaf * jnp.nan, state.params)
            kept = jax.tree.map(jnp.copy, (state.params, state.moments, state.carry))
            after, report = good(dataclasses.replace(state, params=poisoned), batch, seed)
            return dataclasses.replace(after, params=kept[0], moments=kept[1], carry=kept[2]), report

        return step

    return mock.patch.object(loop, "compile_step", compiled)


@pytest.mark.slow
def test_a_bad_step_is_skipped_counted_and_named_and_twenty_in_a_row_stop_the_run(
    nanos: Callable[[str], Nano], tmp_path: Path, capsys: pytest.CaptureFixture, row: Table
) -> None:
    with bad_at({7, 13, *range(25, 60)}), pytest.raises(Diverged, match="20 non-finite steps in a row up to step 44"):
        command.pretrain(nanos("mlm").run, tmp_path / "run")
    skipped = {line["step"]: line["skipped"] for line in test_loop.rows(tmp_path / "run") if line["split"] == "train"}
    assert [skipped[step] for step in (6, 7, 12, 13, 24)] == [0, 1, 1, 2, 2]
    taken = dict(line.split("\t") for line in (tmp_path / "run" / "examples.log").read_text().splitlines())
    said = capsys.readouterr().err
    for step in (7, 13):
        assert f"step {step} is not finite and skipped: rows {taken[str(step)]}" in said
    row("T9 NaN in one step", 2, "skipped, counted, its rows named")
    last = newest(tmp_path / "run")
    assert last == 40 and verify(tmp_path / "run" / "checkpoints" / str(last)) == []
    row("T9 twenty in a row", 1, "stopped; the last checkpoint is whole and finite")


@pytest.mark.slow
def test_a_state_that_is_not_finite_starts_no_run(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table
) -> None:
    """A checkpoint, checksums and all, of a state with one NaN."""
    source = undisturbed_alone("mlm") / "checkpoints" / str(STEPS)
    wanted = {path: jax.ShapeDtypeStruct(*kind) for path, kind in arrays.stored(source / "state").items()}
    state = dict(arrays.read(source / "state", wanted))
    name = next(path for path in state if path.startswith("params/") and state[path].ndim == 2)
    state[name] = state[name].at[0, 0].set(jnp.nan)
    files = {name: (source / name).read_bytes() for name in ("config.json", "manifest.json")} | {"tokenizer": source / "tokenizer"}
    with Manager(tmp_path / "run" / "checkpoints", CheckpointConfig()) as manager:
        manager.save(STEPS - EVERY, state, files)
    with pytest.raises(UserError, match="a number of its state is not finite; start from an older step"):
        command.pretrain(nanos("mlm").run, tmp_path / "run")
    row("T9 NaN in a checkpoint", 1, "refused before the first step")


def test_a_state_that_is_not_finite_is_not_saved(nanos: Callable[[str], Nano], tmp_path: Path, row: Table) -> None:
    """A moment that overflows, with loss and gradient finite: the step counts as good, and the save that is due refuses."""
    compile_step = loop.compile_step
    overflowed = lambda leaf: leaf + jnp.inf if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    def compiled(*parts: Any) -> Any:
        good = compile_step(*parts)

        def step(state: Any, batch: Any, seed: Any) -> Any:
            state, report = good(state, batch, seed)
            if int(state.step) == 2 * EVERY:
                state = dataclasses.replace(state, moments=jax.tree.map(overflowed, state.moments))
            return state, report

        return step

    said = f"step {2 * EVERY}: a number of the state is not finite"
    with mock.patch.object(loop, "compile_step", compiled), pytest.raises(Diverged, match=said):
        command.pretrain(nanos("mlm").run, tmp_path / "run")
    assert newest(tmp_path / "run") == EVERY and verify(tmp_path / "run" / "checkpoints" / str(EVERY)) == []
    row("T9 infinite moment at a save", 1, "not saved; the last checkpoint is whole and finite")
