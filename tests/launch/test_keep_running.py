"""launch/keep_running.sh with commands that do nothing but end."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.launch.world import LAUNCH, World


def keep_running(world: World, *options: object) -> int:
    world.ended = world.run("keep_running.sh", "--workdir", world.folder / "run", *options, "--", "jaxenc", "pretrain")
    return world.ended.returncode


@pytest.mark.parametrize("code", [0, 2, 3, 126, 127])
def test_what_is_not_tried_again(world: World, code: int) -> None:
    world.codes(code)
    assert keep_running(world) == code and len(world.given()) == 1


def test_75_and_crashes_start_again_as_the_same_run(world: World) -> None:
    world.codes(75, 134, 1)
    assert keep_running(world) == 0
    assert world.given() == [["jaxenc", "pretrain", "--workdir", f"{world.folder}/run"]] * 4


def test_three_restarts_without_a_newer_checkpoint_end_it(world: World) -> None:
    world.codes(*[1] * 9)
    assert keep_running(world) == 1 and len(world.given()) == 4
    assert "ended with 1; 3 restarts brought no newer checkpoint than step -1: giving up" in world.ended.stderr


@pytest.mark.parametrize("scheme, half", [("", "99.tmp"), ("file://", "99")])
def test_a_newer_checkpoint_starts_the_count_again(world: World, scheme: str, half: str) -> None:
    """Two starts bring a step each, with 75 as with a crash, the next two none; a half-written step counts for nothing."""
    steps = world.folder / "run" / "checkpoints"
    text = f'''n=$(ls "{steps}" 2>/dev/null | grep -c "^[0-9]$")
    [ $n -eq 2 ] || (mkdir -p "{steps}/$((n + 1))" && touch "{steps}/$((n + 1))/CHECKSUMS.json")
    mkdir -p "{steps}/{half}"
    exit 75'''
    world.program("jaxenc", f"#!/bin/bash\necho x >> {world.folder}/starts\n{text}\n")
    done = world.run("keep_running.sh", "--workdir", f"{scheme}{world.folder}/run", "--restarts", 2, "--", "jaxenc")
    assert done.returncode == 75 and "2 restarts brought no newer checkpoint than step 2" in done.stderr
    assert (world.folder / "starts").read_text() == "x\n" * 4


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_checkpoint_of_any_seed_of_a_fine_tuning_counts(world: World, scheme: str) -> None:
    """The second seed begins again at step 1, far below the last step of the first."""
    text = """n=$(wc -l < "$FAKES/starts"); echo x >> "$FAKES/starts"
    [ $n -lt 4 ] || exit 1
    step="$FAKES/run/seed_$((9 + n / 2))/checkpoints/$((n < 2 ? 100 + n : n))"
    mkdir -p "$step" && touch "$step/CHECKSUMS.json"
    exit 1"""
    (world.folder / "starts").touch()
    world.program("jaxenc", f"#!/bin/bash\n{text}\n")
    done = world.run("keep_running.sh", "--workdir", f"{scheme}{world.folder}/run", "--restarts", 1, "--", "jaxenc")
    assert done.returncode == 1 and (world.folder / "starts").read_text() == "x\n" * 5
    assert "1 restarts brought no newer checkpoint than seed_9 step 101, seed_10 step 3: giving up" in done.stderr


def test_an_address_that_cannot_be_listed_is_one_line(world: World) -> None:
    world.codes(1, 1)
    done = world.run("keep_running.sh", "--workdir", "nowhere://run", "--restarts", 1, "--", "jaxenc")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "nowhere://run: checkpoints cannot be listed, and count as none (Protocol not known: nowhere)\n" in done.stderr


def test_75_is_passed_on_to_a_scheduler(world: World) -> None:
    world.codes(75)
    assert keep_running(world, "--pass-75") == 75 and len(world.given()) == 1


def test_it_waits_after_a_crash_and_not_after_75(world: World) -> None:
    world.codes(75, 1, 75)
    assert keep_running(world, "--wait", 120) == 0
    assert world.calls("sleep") == [["sleep", "120"]]


@pytest.mark.parametrize("handler, code", [("trap 'exit 75' TERM", 75), ("", 75)])
def test_term_reaches_the_command_and_ends_it(tmp_path: Path, handler: str, code: int) -> None:
    """Without a handler bash dies of it: TERM came before Python listened."""
    command = f"{handler}\necho ready\nwhile true; do read -rt 0.1 <> <(:); done"
    arguments = ["bash", str(LAUNCH / "keep_running.sh"), "--workdir", str(tmp_path), "--", "bash", "-c", command]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == code
