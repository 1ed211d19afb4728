"""What a command does, Python does in one call: the same run, the same numbers."""

import dataclasses
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxenc
from jaxenc.cli.main import main
from jaxenc.errors import UserError
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding import partition
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training.settings import TrainConfig
from jaxenc.training.step import compile_step
from tests import tiny
from tests.training.test_loop import assert_same_run, recipe, write_recipe
from tests.training.test_step import BATCH, eight_rows


def test_pretrain_and_evaluate_are_the_commands(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Bit for bit: the state, every logged number and every row; and the held-out numbers, on the run's mesh preset and on another."""
    run = recipe(data, mesh=MeshConfig("fsdp"))
    run = dataclasses.replace(run, train=dataclasses.replace(run.train, steps=6), checkpoint=dataclasses.replace(run.checkpoint, every=3))
    outcome = jaxenc.pretrain(run, tmp_path / "python")
    written = write_recipe(run, tmp_path / "recipe.json")
    assert main(["pretrain", "--config", str(written), "--workdir", str(tmp_path / "command")]) == 0
    assert outcome.step == 6 and not outcome.preempted
    assert_same_run(run, tmp_path / "python", tmp_path / "command", 6)

    capsys.readouterr()
    assert main(["evaluate", "--workdir", str(tmp_path / "command")]) == 0
    said = json.loads(capsys.readouterr().out)
    found = jaxenc.evaluate(tmp_path / "python")
    assert {"step": found.step, **found.numbers} == said
    assert {"step": 6, **outcome.held_out} == said
    copies = jaxenc.evaluate(str(tmp_path / "python"), step=6, batch=8, mesh="dp")
    np.testing.assert_allclose(copies.numbers["mlm_loss"], said["mlm_loss"], rtol=1e-6)
    with pytest.raises(UserError, match="--step 4: no such checkpoint in .*: it holds 3, 6"):
        jaxenc.evaluate(tmp_path / "python", step=4)


def test_seeds_share_one_compilation() -> None:
    """Three seeds through one jitted step, from the same parameters: compiled once, and each has masks and dropout of its own."""
    ready = eight_rows(OptimConfig(), 1e-3)
    config = TrainConfig(batch=8, precision="float32")
    rows = tiny.reads({name: array[:8] for name, array in BATCH.items()}, ready.objective)
    step = compile_step(ready.objective, config, OptimConfig(), tiny.phase(8), ready.layout)
    losses = []
    with jax.set_mesh(ready.mesh):
        placed = partition.place(rows, ready.mesh)
        for seed in (0, 1, 2):
            _, report = step(ready.start(), placed, np.int32(seed))
            losses.append(float(report["loss"]))
    assert step._cache_size() == 1
    assert len(set(losses)) == 3


def test_a_head_that_is_not_passed_is_one_line(data: Path, tmp_path: Path) -> None:
    run = dataclasses.replace(recipe(data), objective=HeadsConfig(("score",)))
    with pytest.raises(UserError, match="score"):
        jaxenc.pretrain(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()
