"""What ends a run early: signals, steps in a row that are not finite."""

import signal
from pathlib import Path

import pytest

from jaxenc.errors import Diverged
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.signals import Stop
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


def run_of(data: Path) -> Run:
    return test_loop.recipe(data, train=TrainConfig(steps=8, batch=8, precision="float32", stop_after_bad=3))


def test_bad_steps_count_where_they_follow_each_other(data: Path, tmp_path: Path) -> None:
    """Six bad steps of eight, never three in a row, end nothing."""
    with stepping(bad=(1, 2, 4, 5, 7, 8)):
        assert pretrain(run_of(data), tmp_path / "run").step == 8


def test_as_many_bad_steps_in_a_row_as_are_too_many_end_the_run(data: Path, tmp_path: Path) -> None:
    with stepping(bad=(1, 2, 4, 5, 6)), pytest.raises(Diverged, match="3 non-finite steps in a row up to step 6"):
        pretrain(run_of(data), tmp_path / "run")
