"""launch/local.sh with processes that do nothing but end: codes, restarts, TERM before KILL."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.conftest import Table
from tests.faults.gang import LAUNCHER, Gang


def shell(text: str) -> tuple[str, str, str]:
    return ("bash", "-c", text)


@pytest.mark.parametrize("code", [0, 2, 3, 75])
def test_what_is_no_accident_is_passed_through_and_not_tried_again(tmp_path: Path, code: int) -> None:
    with Gang(2, 1, shell(f"echo ran $JAXENC_PROCESS of $JAXENC_PROCESSES; exit {code}")) as gang:
        assert gang.end() == code
    # One that fails may end the other before it has said anything.
    assert sorted(gang.lines) in (["[0] ran 0 of 2", "[1] ran 1 of 2"], ["[0] ran 0 of 2"], ["[1] ran 1 of 2"])


def test_a_crash_at_step_0_is_tried_three_times_more(tmp_path: Path, row: Table) -> None:
    run = tmp_path / "run"
    with Gang(2, 1, (*shell("exit 7"), "--workdir", run)) as gang:
        assert gang.end() == 7
    assert re.search("process [01] ended with 7; 3 restarts brought no newer checkpoint than step -1: giving up", gang.lines[-1])
    assert len([line for line in gang.lines if "starting all 2 again" in line]) == 3
    row("T16 a crash at step 0, always", 1, "given up after 3 restarts without progress")


@pytest.mark.parametrize("name", ["nowhere", "-nowhere", ""])
def test_a_command_that_does_not_exist_is_not_tried_again(tmp_path: Path, name: str) -> None:
    with Gang(2, 1, (name,)) as gang:
        assert gang.end() == 127
    assert "starting all" not in gang.said and len(gang.lines) == 1
    assert f"local: {name}: there is no such command; activate the environment that has it" in gang.said


@pytest.mark.parametrize("first, second, code", [("kill -KILL $$", 1, 137), ("exit 2", 1, 2), ("exit 3", 134, 3)])
def test_the_one_that_died_first_is_named(tmp_path: Path, first: str, second: int, code: int) -> None:
    """Process 0 dies of the loss of process 1, between two looks of the launcher."""
    text = f"""me={tmp_path}/1
    if [ $JAXENC_PROCESS = 1 ]; then echo $$ > $me.new; mv $me.new $me; {first}; fi
    until [ -e $me ] && ! kill -0 $(cat $me) 2>/dev/null; do :; done; exit {second}"""
    with Gang(2, 1, shell(text), RESTARTS="0") as gang:
        assert gang.end() == code
    assert code != 137 or gang.lines[-1].startswith("local: process 1 ended with 137; ")


@pytest.mark.parametrize("address, folder", [("", "checkpoints"), ("", "seed_{}/checkpoints"), ("file://", "checkpoints")])
def test_progress_is_what_counts(tmp_path: Path, address: str, folder: str) -> None:
    """Each start leaves a newer checkpoint, those of a fine-tuning in turn for two seeds, so five crashes in a row are no reason to give
    up."""
    run, starts = tmp_path / "the run", tmp_path / "starts"
    starts.mkdir()
    step = f"'{run}'/{folder.format('$((n % 2))')}/$((n / 2 + n % 2 * 3))" if "{}" in folder else f"'{run}'/{folder}/$n"
    text = f"""[ $JAXENC_PROCESS = 0 ] || exec sleep 60
    n=$(ls {starts} | wc -l); [ $n -lt 5 ] || exit 75
    mkdir {starts}/$n && mkdir -p {step} && touch {step}/CHECKSUMS.json; exit 7"""
    with Gang(2, 1, (*shell(text), f"--workdir={address}{run}"), RESTARTS="1") as gang:
        assert gang.end() == 75
    assert len([line for line in gang.lines if "starting all 2 again" in line]) == 5


def test_after_progress_it_is_three_times_more_too(tmp_path: Path) -> None:
    steps = tmp_path / "run" / "checkpoints"
    steps.mkdir(parents=True)
    with Gang(1, 1, (*shell(f"mkdir -p {steps}/1; exit 7"), f"--workdir={tmp_path}/run")) as gang:
        assert gang.end() == 7
    assert len([line for line in gang.lines if "starting all 1 again" in line]) == 3


def test_one_that_ignores_term_is_killed(tmp_path: Path) -> None:
    text = "[ $JAXENC_PROCESS = 1 ] && { sleep 0.5; exit 2; }; trap 'echo told' TERM; while true; do sleep 0.1; done"
    started = time.monotonic()
    with Gang(2, 1, shell(text), KILL_AFTER="2") as gang:
        assert gang.end() == 2
    assert time.monotonic() - started > 2
    assert gang.lines == ["[0] told"]


def test_a_request_to_stop_reaches_every_process(tmp_path: Path) -> None:
    with Gang(2, 1, shell("trap 'echo told; exit 75' TERM; echo ready; while true; do sleep 0.1; done")) as gang:
        gang.until(lambda: len(gang.lines) == 2, "two processes")
        gang.signal(signal.SIGTERM)
        assert gang.end() == 75
    assert sorted(gang.lines[2:]) == ["[0] told", "[1] told", "local: TERM: asked every process to stop after its step"]


def test_a_request_to_stop_may_reach_the_whole_group_of_the_launcher(tmp_path: Path) -> None:
    """As timeout and systemd send it. The launcher's own helpers live on, so what the processes say while they stop does not end them."""
    text = "trap 'sleep 0.2; echo told; exit 75' TERM; echo ready; while true; do sleep 0.1; done"
    command = ["bash", str(LAUNCHER), "--procs", "2", "--devices-per-proc", "1", "--", *shell(text)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True) as launcher:
        assert sorted(launcher.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
        os.killpg(launcher.pid, signal.SIGTERM)
        said, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 75 and sorted(said.splitlines()) == ["[0] told", "[1] told"]


def test_a_request_that_comes_before_python_listens_is_one_to_run_again(tmp_path: Path) -> None:
    with Gang(2, 1, shell("echo ready; while true; do sleep 0.1; done")) as gang:
        gang.until(lambda: len(gang.lines) == 2, "two processes")
        gang.signal(signal.SIGTERM)
        assert gang.end() == 75


def test_a_second_interrupt_ends_what_does_not_stop(tmp_path: Path) -> None:
    with Gang(2, 1, shell("trap 'echo told' TERM; echo ready; while true; do sleep 0.1; done")) as gang:
        gang.until(lambda: len(gang.lines) == 2, "two processes")
        gang.signal(signal.SIGINT)
        gang.until(lambda: gang.said.count("told") == 2, "word of the first in both")
        assert "local: INT: asked every process to stop after its step (Ctrl-C again: end them now)" in gang.lines
        gang.signal(signal.SIGINT)
        assert gang.end() == 137


def test_a_launcher_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    with Gang(2, 1, shell("trap '' TERM; echo ready; while true; do sleep 0.1; done")) as gang:
        gang.until(lambda: len(gang.lines) == 2, "two processes")
        pids = [gang.pid(rank) for rank in range(2)]
        gang.signal(signal.SIGKILL)
        end = time.monotonic() + 60
        while any(alive(pid) for pid in pids) and time.monotonic() < end:
            time.sleep(0.05)
        left = [pid for pid in pids if alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert left == []


def alive(pid: int) -> bool:
    """Whether a process runs; one that has died and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("arguments", [["--procs", "two", "--", "true"], ["--procs", "2", "--"], ["--procs"], ["true"], ["--", "true"]])
def test_a_wrong_call_is_one_line(arguments: list[str]) -> None:
    done = subprocess.run(["bash", str(LAUNCHER), *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("local: ") and done.stderr.count("\n") == 1


def test_another_system_is_refused_with_advice() -> None:
    """macOS has neither setsid nor this bash."""
    command = ["bash", str(LAUNCHER), "--procs", "2", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OSTYPE": "darwin24"})
    assert done.returncode == 2 and re.fullmatch("local: this is darwin24, and the launcher needs Linux: .*\n", done.stderr)


@pytest.mark.parametrize("value", ["x", "-1", "99999999999999999999"])
@pytest.mark.parametrize("name", ["RESTARTS", "KILL_AFTER"])
def test_a_limit_that_is_no_number_is_one_line(name: str, value: str) -> None:
    """An unread RESTARTS would start a failing command for ever."""
    command = ["bash", str(LAUNCHER), "--procs", "1", "--", "false"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, name: value}, timeout=120)
    assert done.returncode == 2 and re.fullmatch("local: KILL_AFTER .*: whole numbers up to 999999999\n", done.stderr)
