"""launch/tpu_vm with a fake cloud of one slice of two workers, whose commands really run."""

import re
from pathlib import Path

import pytest

from tests.launch.fakes import option
from tests.launch.world import AWKWARD, World, verbs

SLICE = ("--name", "my-run", "--zone", "z", "--type", "v5litepod-16", "--version", "v2-alpha-tpuv5-lite", "--spot")
WHEEL = "jaxenc-1.0-py3-none-any.whl"


def at(world: World) -> tuple[str, ...]:
    """All options of a run. A wheel, since packing the checkout takes a second."""
    (world.folder / WHEEL).touch()
    return (*SLICE, "--wheel", WHEEL, "--workdir", f"file://{world.folder}/bucket/my-run", "--", *AWKWARD)


def wanted(world: World) -> list[str]:
    return [*AWKWARD, "--workdir", f"file://{world.folder}/bucket/my-run"]


def test_create_setup_and_run_start_the_command_once_on_each_worker(world: World) -> None:
    for verb in ("create", "status", "setup", "run"):
        assert world.run("tpu_vm/tpu.sh", verb, *at(world)).returncode == 0, verb
    assert world.given() == [wanted(world)] * 2
    units = world.calls("systemd-run")
    assert [option(unit, "--unit") for unit in units] == ["jaxenc-my-run"] * 2
    # Nothing of the user's goes through systemd, which would expand it once more.
    assert not [word for unit in units for word in unit if "$" in word]


def test_a_run_goes_on_as_the_same_run_on_a_new_slice(world: World) -> None:
    """create, setup, run: worker 0 stops with 75 and starts again; then the slice is lost; the new one finishes."""
    world.codes(75, "lost", 75)
    done = world.run("tpu_vm/tpu.sh", "babysit", *at(world))
    assert done.returncode == 0, done.stderr
    gcloud = world.calls("gcloud")
    assert [verb for verb in verbs(gcloud) if verb != "describe"] == [
        "create", "state", "scp", "setup", "start", "delete", "create", "state", "scp", "setup", "start", "state", "delete"
    ]  # fmt: skip
    for verb in ("create", "setup", "start"):
        one, other = [call for call in gcloud if verbs([call]) == [verb]]
        assert one == other
    # Twice on the slice that was lost, then both workers of the new one, worker 0 once more after 75.
    assert world.given() == [wanted(world)] * 5
    assert "my-run is SUSPENDED" in done.stderr


@pytest.mark.parametrize("code", [2, 3])
def test_what_is_not_tried_again_leaves_the_slice_there(world: World, code: int) -> None:
    world.codes(code, code)
    done = world.run("tpu_vm/tpu.sh", "babysit", *at(world))
    assert done.returncode == code
    assert f"the run ended with {code}: see the logs, then delete my-run" in done.stderr
    assert "delete" not in verbs(world.calls("gcloud")) and len(world.given()) == 2


def test_a_stop_ends_the_babysitter_too(world: World) -> None:
    for verb in ("create", "status", "setup"):
        world.run("tpu_vm/tpu.sh", verb, *at(world))
    world.codes(2, 2)  # it ends here, so that nothing is left to ask
    world.run("tpu_vm/tpu.sh", "run", *at(world))
    assert world.run("tpu_vm/tpu.sh", "stop", *SLICE).returncode == 0
    assert ["systemctl", "stop", "jaxenc-my-run"] in world.calls()
    done = world.run("tpu_vm/tpu.sh", "babysit", *at(world))
    assert done.returncode == 75 and "stopped, with a checkpoint" in done.stderr
    world.forget()
    assert world.run("tpu_vm/tpu.sh", "run", *at(world)).returncode == 0
    assert world.given() == [wanted(world)] * 2


@pytest.mark.parametrize("answer, tries", [("absent", 3), ("ended 75", 3)])
def test_starts_that_come_to_nothing_end_it(world: World, answer: str, tries: int) -> None:
    started = f'*"start gs:"*) echo x >> {world.folder}/starts ;;'
    world.program("gcloud", f'#!/bin/bash\ncase $* in *describe*) echo ACTIVE ;; {started} *) echo "jaxenc-state: {answer}" ;; esac\n')
    done = world.run("tpu_vm/tpu.sh", "babysit", *SLICE, "--workdir", "gs://b/r", "--", "jaxenc")
    assert done.returncode == 2 and "three starts in a row came to nothing" in done.stderr
    assert len((world.folder / "starts").read_text().split()) == tries


def test_three_failed_set_ups_end_it(world: World) -> None:
    world.program("python3", "#!/bin/bash\nexit 1\n")
    done = world.run("tpu_vm/tpu.sh", "babysit", *at(world))
    assert done.returncode == 2 and "three starts in a row came to nothing" in done.stderr
    assert verbs(world.calls("gcloud")).count("setup") == 3 and not world.given()


def test_a_slice_that_cannot_be_had_ends_it(world: World) -> None:
    world.program("gcloud", "#!/bin/bash\necho NOT_FOUND >&2; exit 1\n")
    assert world.run("tpu_vm/tpu.sh", "babysit", *at(world)).returncode == 1


def test_several_slices_are_one_resource_and_one_run(world: World) -> None:
    done = world.run("tpu_vm/tpu.sh", "babysit", "--dry-run", "--slices", 2, *at(world))
    create, *_, start, _, _ = done.stdout.splitlines()
    assert "--node-count=2 --node-prefix=my-run" in create and "--node-id" not in create
    assert start.count("worker.sh start") == 1 and "--node=all --worker=all" in start


def test_best_effort_is_in_the_alpha_track(world: World) -> None:
    options = [*SLICE[:-1], "--best-effort", "--dry-run"]
    assert world.run("tpu_vm/tpu.sh", "create", *options).stdout.startswith("gcloud alpha compute tpus queued-resources create my-run")


def test_what_is_installed_is_the_wheel_or_the_checkout(world: World) -> None:
    home = Path(world.folder, "vm", "1", "jaxenc-my-run")
    for verb in ("create", "status", "setup"):
        assert world.run("tpu_vm/tpu.sh", verb, *at(world)).returncode == 0
    assert sorted(path.name for path in home.iterdir()) == [WHEEL, "launch", "venv"]
    assert world.calls("python3")[-1][-1] == f"jaxenc[tpu,data,log] @ file://{home}/{WHEEL}"
    assert world.run("tpu_vm/tpu.sh", "setup", *SLICE, "--extras", "tpu").returncode == 0
    assert (home / "jaxenc" / "rng.py").is_file() and not (home / WHEEL).exists()
    assert world.calls("python3")[-1][-1] == f"jaxenc[tpu] @ file://{home}"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("babysit", *SLICE, "--workdir", "/data/run", "--", "jaxenc"), "a new slice has empty disks; write gs://BUCKET/my-run"),
        (("create", "--name", "r", "--zone", "z"), "create needs --type and --version"),
        (("create", *SLICE, "--reserved"), "give one of --spot, --reserved and --best-effort"),
        (("create", "--name", "r"), "--zone is missing"),
        (("fly", "--name", "r"), "fly: the verbs are create, setup, run"),
    ],
)
def test_impossible_options_are_refused_in_one_line(world: World, arguments: tuple[str, ...], message: str) -> None:
    done = world.run("tpu_vm/tpu.sh", *arguments)
    assert done.returncode == 2 and re.fullmatch(r"tpu\.sh: .*\n", done.stderr) and message in done.stderr
    assert not world.calls()
