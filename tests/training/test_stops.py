"""What ends a run early: signals, steps in a row that are not finite."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli.interrupted import ENDING, INTERRUPTED
from jaxenc.errors import Diverged
from jaxenc.interrupts import AGAIN
from jaxenc.training import loop
from jaxenc.training.log import Log
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, TrainConfig
from jaxenc.training.signals import STOPPING, Stop
from tests.group import Process
from tests.training import test_loop
from tests.training.stepping import stepping


def test_the_first_signal_asks_and_a_second_interrupt_ends() -> None:
    """SIGTERM asks as often as it comes; the handlers of before are put back."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with Stop() as stop:
        assert not stop.requested
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
            assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_second_interrupt_that_was_lost_ends_the_run_when_it_asks_next() -> None:
    """As where both come within one call of C, which Python sees as one."""
    with Stop() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            while True:
                assert stop.requested


def test_a_thread_of_the_caller_trains_without_handlers() -> None:
    found = []
    before = signal.getsignal(signal.SIGINT)

    def work() -> None:
        with Stop() as stop:
            found.append((stop.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, before)]


def held_up(place: str, data: Path, folder: Path) -> Process:
    """A run that is held at a place of `held_up.py`: it evaluates and saves at its second step of four."""
    train, evaluated = TrainConfig(steps=4, batch=8, precision="float32"), EvalConfig(every=2, batch=16)
    run = test_loop.recipe(data, train=train, checkpoint=CheckpointConfig(every=2), eval=evaluated)
    recipe = test_loop.write_recipe(run, folder / "recipe.json")
    flags = os.environ["XLA_FLAGS"].replace("device_count=8", "device_count=1")
    words = [place, str(folder / "go"), "pretrain", "--config", str(recipe), "--workdir", str(folder / "run")]
    return Process(
        [sys.executable, "-m", "tests.training.held_up", *words],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "XLA_FLAGS": flags}, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def read_until(process: Process, wanted: str) -> str:
    text = ""
    while wanted not in text:
        line = process.stderr.readline()
        assert line, text
        text += line
    return text


@pytest.mark.slow
@pytest.mark.parametrize(
    "place, number, said, code, step",
    [
        ("compile", signal.SIGINT, f"{STOPPING}; {AGAIN}\n", 75, 1),
        pytest.param("compile", signal.SIGTERM, f"{STOPPING}\n", 75, 1, marks=pytest.mark.full),
        pytest.param("evaluation", signal.SIGINT, f"{STOPPING}; {AGAIN}\n", 75, 2, marks=pytest.mark.full),
        pytest.param("save", signal.SIGINT, f"{STOPPING}; {AGAIN}\n", 75, 2, marks=pytest.mark.full),
        pytest.param("data", signal.SIGINT, f"{ENDING}; {AGAIN}\n", 1, 0, marks=pytest.mark.full),
    ],
)
def test_a_signal_is_acknowledged_while_a_call_of_c_runs(
    place: str, number: int, said: str, code: int, step: int, data: Path, tmp_path: Path
) -> None:
    """Before the call returns: it does so only once the line has been read. Then the run takes its step, saves, and ends."""
    with held_up(place, data, tmp_path) as process:
        read_until(process, "held\n")
        process.send_signal(number)
        read_until(process, said)
        (tmp_path / "go").touch()
        rest = process.communicate(timeout=120)[1]
    assert process.returncode == code, rest
    assert AGAIN not in rest and ((tmp_path / "run" / "checkpoints" / str(step)).is_dir() or not step)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["compile", pytest.param("data", marks=pytest.mark.full)])
def test_a_second_interrupt_ends_a_call_of_c(place: str, data: Path, tmp_path: Path) -> None:
    with held_up(place, data, tmp_path) as process:
        read_until(process, "held\n")
        process.send_signal(signal.SIGINT)
        read_until(process, AGAIN)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=120)[1]
    assert process.returncode == 1 and rest == f"jaxenc: {INTERRUPTED}\n"


def run_of(data: Path) -> Run:
    return test_loop.recipe(data, train=TrainConfig(steps=8, batch=8, precision="float32", stop_after_bad=3))


def test_bad_steps_count_where_they_follow_each_other(data: Path, tmp_path: Path) -> None:
    """Six bad steps of eight, never three in a row, end nothing."""
    with stepping(bad=(1, 2, 4, 5, 7, 8)):
        assert pretrain(run_of(data), tmp_path / "run").step == 8


def test_as_many_bad_steps_in_a_row_as_are_too_many_end_the_run(data: Path, tmp_path: Path) -> None:
    with stepping(bad=(1, 2, 4, 5, 6)), pytest.raises(Diverged, match="3 non-finite steps in a row up to step 6"):
        pretrain(run_of(data), tmp_path / "run")


@pytest.mark.slow
def test_a_start_says_which_steps_it_takes_again_and_when_a_checkpoint_comes(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Two starts that end without a save, one before the first checkpoint and one after it."""

    def ends_after(step: int, every: int) -> str:
        class Ends(Log):
            def push(self, now: int, *rest: Any) -> None:
                super().push(now, *rest)
                if now > step:
                    raise KeyboardInterrupt

        run = test_loop.recipe(data, checkpoint=CheckpointConfig(every=every), eval=EvalConfig(every=0, batch=16))
        with mock.patch.object(loop, "Log", Ends), pytest.raises(KeyboardInterrupt):
            pretrain(run, tmp_path / "run")
        return capsys.readouterr().err

    assert "an earlier start" not in ends_after(3, 0)
    said = "an earlier start reached step 3, before its first checkpoint: this one takes those steps again"
    assert f"{said}; one is written only at the end or on Ctrl-C (checkpoint.every is 0)\n" in ends_after(3, 0)
    assert f"{said}; the next one comes after step 6 (checkpoint.every is 6)\n" in ends_after(7, 6)
    said = "an earlier start reached step 7 and left no checkpoint after step 6: this one takes those steps again"
    assert f"{said}; the next one comes after step 12 (checkpoint.every is 6)\n" in ends_after(7, 6)
