"""R32: `jaxenc inspect` says what a step takes of each device's memory, whether it fits, and refuses what `pretrain` refuses."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.bench.step import random_rows
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import main
from jaxenc.sharding import partition
from jaxenc.training import memory
from jaxenc.training.memory import StepMemory
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run
from jaxenc.training.state import Layout, layout
from jaxenc.training.step import compile_step, fields
from tests import tiny
from tests.cli.test_pretrain import command

NANO = ["model.width=16", "model.heads=2", "model.feed_forward=32", "model.layers=1", "data.length=24", "train.batch=128"]


def given(*more: str) -> list[str]:
    return [f"--config.{item}" for item in (*NANO, *more)]


def parts(*more: str, preset: str = "dp", devices: int = 1) -> tuple[Any, Run, Phase, Layout]:
    """(objective, run, phase, layout) of a nano BERT."""
    run = cli_config.resolve("bert/tiny", given(*more))
    vocabulary, phase = run.model.published_vocabulary, run.plan[0]
    objective = run.build(vocabulary, phase, "cpu")
    return objective, run, phase, layout(objective, run.optim, phase.batch, tiny.mesh(preset, devices), preset)


def planned(*more: str) -> StepMemory:
    found = memory.plan(*parts(*more))
    assert isinstance(found, StepMemory)
    return found


@pytest.mark.parametrize("preset", ["dp", pytest.param("fsdp", marks=pytest.mark.full)])
def test_r32_the_plan_is_of_the_step_that_runs(preset: str) -> None:
    """The bytes that the arguments of a real step have on one of 8 devices, part by part, exactly, and what its compiler says. The
    plan makes no array."""
    objective, run, phase, place = parts(preset=preset, devices=8)
    before = len(jax.live_arrays())
    found = memory.plan(objective, run, phase, place)
    assert len(jax.live_arrays()) == before
    taken = {name: objective.fields[name] for name in fields(objective, run.train)}
    with jax.set_mesh(place.mesh):
        state = place.create(rng.init_key(0))
        batch = partition.place(random_rows(taken, phase.batch, phase.length, run.model.published_vocabulary), place.mesh)
        step = compile_step(objective, run.train, run.optim, phase, place).lower(state, batch, np.int32(0)).compile()
    held = lambda tree: sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))
    assert (found.parameters, found.moments, found.carry, found.batch) == tuple(
        map(held, (state.params, state.moments, state.carry, batch))
    )
    stats = step.memory_analysis()
    # The program has no argument for the numbers of the rows, which it does not read, and has three counts: step, skipped and the seed.
    assert abs(found.state + found.batch - stats.argument_size_in_bytes) <= 4 * phase.batch
    assert found.gradients == held(state.params)
    new = stats.output_size_in_bytes - stats.alias_size_in_bytes
    assert found.gradients + found.activations == stats.temp_size_in_bytes + stats.generated_code_size_in_bytes + new


@pytest.mark.full
def test_r32_the_advice_makes_a_step_smaller() -> None:
    """What does not fit is told what to change, and each change takes less: four microbatches a third of the activations at most; the
    verdict changes where the device has that much."""
    _, run, phase, place = parts()
    whole, in_four, half = planned(), planned("train.microbatches=4"), planned("train.batch=64")
    assert in_four.activations < whole.activations / 3 and in_four.state == whole.state
    assert half.activations < 0.6 * whole.activations
    said = memory.verdict(whole, run, phase, place.mesh, in_four.total)
    assert said.endswith(": set train.microbatches=2 or more, or lower train.batch, or set train.remat=block")
    assert re.match("does not fit in [0-9.]+ MB: ", said)
    assert memory.verdict(in_four, run, phase, place.mesh, in_four.total).startswith("fits in ")
    assert "the state and the gradients alone do not: use more devices" in memory.verdict(whole, run, phase, place.mesh, whole.state)
    assert "alone do not: set mesh.preset=fsdp" in memory.verdict(whole, run, phase, tiny.mesh("dp", 8), whole.state)


@pytest.mark.full
def test_r32_remat_and_fsdp_take_less() -> None:
    """A block that is computed again keeps fewer activations; a split state is smaller on each device."""
    deep = ("model.layers=4", "data.length=64", "model.positions=64")
    assert planned(*deep, "train.remat=block").activations < planned(*deep).activations
    split, copied = (memory.plan(*parts(*deep, preset=preset, devices=8)) for preset in ("fsdp", "dp"))
    assert split.state < copied.state / 4


def test_r32_the_command_says_what_a_step_takes(capsys: pytest.CaptureFixture) -> None:
    """On stderr, that it compiles and how not to; on stdout one line a phase, whose parts add up."""
    with tiny.on_one_device():
        assert main(["inspect", "--config", "bert/tiny", "--devices", "8", *given()]) == 0
        out, err = capsys.readouterr()
        assert err == "compiling the step: 128 rows of 24 tokens (--no-compile leaves it out)\n"
        line = out.splitlines()[-1]
        assert line.startswith("phase 1: a step takes ") and re.search(r"\): fits in [\d,.]+ MB$", line)
        total, *each = (float(number.replace(",", "")) for number in re.findall(r" ([\d,.]+) MB", line)[:-1])
        assert abs(sum(each) - total) <= 0.05 * (len(each) + 1)
        assert main(["inspect", "--config", "bert/tiny", "--devices", "8", "--no-compile", *given()]) == 0
        assert capsys.readouterr() == (out.removesuffix(f"{line}\n"), "")


def test_r32_devices_that_are_not_here(capsys: pytest.CaptureFixture, fails: Callable[..., str]) -> None:
    """The state on each of 16 devices needs none of them; the memory of a step does."""
    assert main(["inspect", "--config", "bert/tiny", "--devices", "16", "--config.mesh.preset=fsdp", *given()]) == 0
    out = capsys.readouterr().out
    assert "on each of 16 devices (data 1 x fsdp 16 x tensor 1): " in out
    assert out.endswith("phase 1: the memory of a step is not planned: this machine has 8 of the 16 devices\n")
    assert "128 rows cannot be split over 24 devices" in fails("inspect", "--config", "bert/tiny", "--devices", "24", *given())


def test_r32_a_student_without_its_teacher_is_not_planned(capsys: pytest.CaptureFixture) -> None:
    assert main(["inspect", "--config", "distilbert/tiny", "--config.objective.kind=distillation", *given()]) == 0
    assert capsys.readouterr().out.endswith("not planned: name the teacher with --config.objective.teacher=DIR\n")


LARGER = "mesh.preset=fsdp --config.mesh.fsdp=16"


@pytest.mark.parametrize("override", ["train.batch=100", "train.microbatches=2 --config.train.batch=8", "mesh.tensor=3", LARGER])
def test_r32_what_pretrain_refuses_is_refused(override: str, data: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    """The named case, 100 rows on 8 devices, and a mesh that is larger than the machine, in the words of `pretrain`."""
    more = f"--config.{override}".split()
    said = fails(*command(data, tmp_path / "run", *more))
    assert fails("inspect", "--config", "bert/tiny", "--config.train.batch=8", *more) == said
    assert "cannot be split over 8 devices" in said or "mesh.tensor" in said
