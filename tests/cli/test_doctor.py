"""`jaxenc doctor` in one process: its lines and its exit code."""

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.cli.main import main
from tests.faults.disk import disk, needs_root
from tests.reports.normal.test_planted import RUNS


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture) -> Callable[..., tuple[int, list[str]]]:
    """Runs it, and returns its exit code and its lines."""

    def run(*argv: object) -> tuple[int, list[str]]:
        capsys.readouterr()
        code = main(["doctor", *map(str, argv)])
        return code, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{there.getsockname()[1]}"
    for name, value in (("COORDINATOR", address), ("PROCESSES", "2"), ("PROCESS", "0")):
        monkeypatch.setenv(f"JAXENC_{name}", value)


def test_a_healthy_machine_has_no_problem(data: Path, tmp_path: Path, doctor: Callable) -> None:
    code, lines = doctor("--workdir", tmp_path / "run", "--config", "bert/tiny", f"--config.data.path={data}")
    assert code == 0 and not [line for line in lines if line.startswith("problem")]
    checks = [line[9:].partition(":")[0].split()[0] for line in lines[:-1]]
    assert checks == ["processes", "versions", "devices", "workdir", "workdir", "data", "compilation", "all-reduce"]
    assert lines[-1].startswith("no problems, ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name, code, line", [("divergence", 2, "problem  divergence: "), ("bert", 0, "ok       training: mlm_loss ")])
def test_a_run_that_has_trained_is_commented_on(name: str, code: int, line: str, tmp_path: Path, doctor: Callable) -> None:
    """Beside the other checks, and a run that has diverged stops a script that would resume it."""
    shutil.copytree(RUNS / name, tmp_path / name)
    before = sorted(path.name for path in (tmp_path / name).iterdir())
    got, lines = doctor("--workdir", tmp_path / name)
    assert got == code and [one for one in lines if one.startswith(line)]
    assert [one for one in lines if one.startswith("ok       all-reduce")]
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == before


def test_one_that_waits_for_nobody_says_who_is_missing(one_of_two: None, doctor: Callable) -> None:
    code, lines = doctor("--wait", "0.3")
    assert code == 2 and len(lines) == 1
    assert lines[0].startswith(
        "problem  processes: 1 of 2 came within 0.3 s, not process 1; see what it says, and start every process with JAXENC_"
    )


def test_a_coordinator_of_loopback_on_two_nodes_is_found_before_anybody_waits(
    one_of_two: None, doctor: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"JOB_ID": "7", "STEP_ID": "0", "STEP_NUM_TASKS": "2", "PROCID": "0", "STEP_NODELIST": "a,b"}
    for name, value in step.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    code, lines = doctor("--wait", "600")
    assert code == 2 and lines[0].startswith("problem  coordinator: the address of process 0, 127.0.0.1:") and len(lines) == 1


def test_a_work_directory_that_takes_no_files_and_a_shard_that_is_gone(data: Path, tmp_path: Path, doctor: Callable) -> None:
    (tmp_path / "file").write_text("mine")
    code, lines = doctor("--workdir", tmp_path / "file" / "run", "--data", tmp_path)
    problems = [line for line in lines if line.startswith("problem")]
    assert code == 2 and len(problems) == 2 and lines[-1].startswith("2 problems, ")
    assert f"{tmp_path / 'file'}: Not a directory" in problems[0] and "manifest.json: No such file" in problems[1]


@needs_root
def test_a_disk_with_less_room_than_three_checkpoints(tmp_path: Path, doctor: Callable) -> None:
    with disk(tmp_path / "small", 1 << 20):
        code, lines = doctor("--workdir", tmp_path / "small" / "run", "--config", "bert/tiny")
    (problem,) = (line for line in lines if line.startswith("problem"))
    assert code == 2 and "fewer than 3; free space, or choose another --workdir" in problem


def test_options_that_mean_nothing_are_one_line(fails: Callable[..., str]) -> None:
    assert "--wait: 0 seconds; give a number above 0" in fails("doctor", "--wait", "0")
    assert "--config.train.steps=3: it sets a field of a config, and there is none; add --config" in fails(
        "doctor", "--config.train.steps=3"
    )
    assert "no such recipe" in fails("doctor", "--config", "bert/bse")
