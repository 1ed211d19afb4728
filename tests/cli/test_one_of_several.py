"""R34: a command that trains, evaluates or predicts says that it was started as one of several, and does nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

COMMANDS = {
    "pretrain": ("--config", "bert/tiny", "--workdir", "{place}"),
    "demo": ("--workdir", "{place}"),
    "evaluate": ("--workdir", "{place}"),
    "bench": ("step", "--config", "bert/tiny"),
    "predict": ("--model", "{place}", "--input", "{place}"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_r34_one_of_two_tasks_of_slurm_does_nothing_alone(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    monkeypatch.setenv("SLURM_NTASKS", "2")
    monkeypatch.setenv("SLURM_PROCID", "0")
    said = fails(command, *(item.format(place=tmp_path / "run") for item in COMMANDS[command]))
    assert "SLURM_NTASKS is 2 and SLURM_PROCID is 0: one of 2 processes" in said and "JAXENC_COORDINATOR=HOST:PORT" in said
    assert not list(tmp_path.iterdir())
