"""launch/tpu_vm with a fake cloud of one slice of two workers, whose commands really run."""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.launch.fakes import option
from tests.launch.world import AWKWARD, LAUNCH, World, verbs

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
    assert "tpu: my-run: SUSPENDED: asking for another\n" in done.stderr


@pytest.mark.parametrize("code", [2, 3])
def test_what_is_not_tried_again_leaves_the_slice_there(world: World, code: int) -> None:
    world.codes(code, code)
    done = world.run("tpu_vm/tpu.sh", "babysit", *at(world))
    assert done.returncode == code
    assert f"the run ended with {code}: see the logs (--worker all), then delete my-run" in done.stderr
    assert "delete" not in verbs(world.calls("gcloud")) and len(world.given()) == 2


@pytest.mark.parametrize("verb", ["run", "babysit"])
def test_what_was_stopped_goes_on_when_it_is_asked_for(world: World, verb: str) -> None:
    for first in ("create", "status", "setup"):
        world.run("tpu_vm/tpu.sh", first, *at(world))
    world.codes(2, 2)  # it ends here, so that nothing is left to ask
    world.run("tpu_vm/tpu.sh", "run", *at(world))
    assert world.run("tpu_vm/tpu.sh", "stop", *SLICE).returncode == 0
    assert ["systemctl", "stop", "jaxenc-my-run"] in world.calls()
    world.forget()
    assert world.run("tpu_vm/tpu.sh", verb, *at(world)).returncode == 0
    assert world.given() == [wanted(world)] * 2


def cloud(world: World, *answers: str) -> subprocess.CompletedProcess[str]:
    """Babysits where every look gives the next of `answers`, the last one for ever: STATE of the slice, or what its workers say; `lost` is
    no answer, with a line on stderr. `starts` has a line for each start."""
    said = " ".join(f"'{answer}'" for answer in answers)
    world.program(
        "gcloud",
        f"""#!/bin/bash
answers=({said})
at=$(cat {world.folder}/at 2>/dev/null || echo 0)
[ $at -lt ${{#answers[@]}} ] || at=$((${{#answers[@]}} - 1))
now=${{answers[at]}}
case $* in
  *describe*) case $now in [A-Z]*) echo "$now"; echo $((at + 1)) > {world.folder}/at ;; *) echo ACTIVE ;; esac ;;
  *"start gs:"*) echo x >> {world.folder}/starts ;;
  *worker.sh?state*)
    echo $((at + 1)) > {world.folder}/at
    [ "$now" != lost ] || {{ echo hm >&2; echo 'Connection refused' >&2; exit 255; }}
    echo "jaxenc-state: $now on w-0" ;;
esac
""",
    )
    world.program("sleep", "#!/bin/bash\n")
    return world.run("tpu_vm/tpu.sh", "babysit", *SLICE, "--workdir", "gs://b/r", "--", "jaxenc")


def starts(world: World) -> int:
    path = world.folder / "starts"
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.parametrize("answer", ["absent", "ended 75"])
def test_starts_that_come_to_nothing_end_it(world: World, answer: str) -> None:
    done = cloud(world, answer)
    assert done.returncode == 2 and "three starts in a row came to nothing" in done.stderr and starts(world) == 3


def test_a_slice_that_cannot_be_made_is_tried_three_times(world: World) -> None:
    done = cloud(world, "FAILED")
    assert done.returncode == 2 and "three starts in a row came to nothing" in done.stderr and not starts(world)


def test_a_stop_ends_the_babysitter_too(world: World) -> None:
    done = cloud(world, "running", "stopped")
    assert done.returncode == 75 and "stopped, with a checkpoint: babysit or run continues it" in done.stderr and not starts(world)


def test_each_change_is_said_once(world: World) -> None:
    done = cloud(world, "ACCEPTED", "ACCEPTED", "lost", "lost", "running", "running", "ended 0")
    assert done.returncode == 0 and done.stderr.splitlines() == [
        f"tpu: my-run: {word}"
        for word in ("ACCEPTED", "workers: cannot be reached (Connection refused)", "workers: running", "workers: ended 0")
    ]


def test_a_run_that_saves_still_runs(world: World) -> None:
    """After `stop` systemd calls the unit deactivating until the checkpoint is written."""
    for verb in ("create", "status", "setup"):
        world.run("tpu_vm/tpu.sh", verb, *at(world))
    (world.folder / "vm/0/jaxenc-my-run/asked").touch()
    worker = str(world.folder / "vm/0/jaxenc-my-run/launch/tpu_vm/worker.sh")
    assert world.bash(worker, "state").stdout.startswith("jaxenc-state: stopped on ")
    world.program("systemctl", "#!/bin/bash\necho deactivating; exit 3\n")
    assert world.bash(worker, "state").stdout.startswith("jaxenc-state: running on ")


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
    done = world.bash(str(checkout(world)), "setup", *SLICE, "--extras", "tpu")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in home.iterdir()) == ["a b ä.py", "added.py", "changed.py", "launch", "venv"]
    assert (home / "changed.py").read_text() == "changed\n"
    assert world.calls("python3")[-1][-1] == f"jaxenc[tpu] @ file://{home}"
    left = "new-1 new-2 new-3 ..."
    assert done.stderr == f"tpu: git does not track these, and they stay here (git add takes them along): {left}\n"
    (world.folder / "checkout" / "changed.py").unlink()
    assert world.bash(str(checkout(world)), "setup", *SLICE).returncode == 0 and not (home / "changed.py").exists()


def checkout(world: World) -> Path:
    """tpu.sh of a small checkout, in which files were changed, deleted, added and created since the last commit."""
    root = world.folder / "checkout"
    if not root.exists():
        shutil.copytree(LAUNCH, root / "launch")
        for name in ("changed.py", "deleted.py", "a b ä.py"):
            (root / name).write_text("committed\n")
        git = ["git", "-C", root, "-c", "user.name=me", "-c", "user.email=me@here"]
        for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
            subprocess.run([*git, *arguments], check=True, env=world.environment)
        (root / "changed.py").write_text("changed\n")
        (root / "deleted.py").unlink()
        for name in ("added.py", *(f"new-{number}" for number in range(1, 6))):
            (root / name).touch()
        subprocess.run([*git, "add", "added.py"], check=True, env=world.environment)
    return root / "launch" / "tpu_vm" / "tpu.sh"


def test_a_dry_run_packs_the_same_checkout(world: World) -> None:
    dry = world.bash(str(checkout(world)), "setup", *SLICE, "--dry-run")
    (world.folder / "agreeable").touch()
    assert world.bash("-euc", dry.stdout).returncode == 0
    with tarfile.open(world.folder / "jaxenc-my-run.tgz") as packed:
        assert {name for name in packed.getnames() if "launch" not in name} == {"a b ä.py", "added.py", "changed.py"}


def test_a_run_that_is_on_is_not_set_up_again(world: World) -> None:
    for verb in ("create", "status"):
        world.run("tpu_vm/tpu.sh", verb, *at(world))
    world.program("systemctl", "#!/bin/bash\nexit 0\n")
    done = world.run("tpu_vm/tpu.sh", "setup", *at(world))
    assert done.returncode == 2 and "tpu: the run is on: stop it first" in done.stderr and not world.calls("python3")


def test_a_folder_without_git_is_refused_with_advice(world: World) -> None:
    shutil.rmtree(checkout(world).parents[2] / ".git")
    done = world.bash(str(checkout(world)), "setup", *SLICE)
    assert done.returncode == 2 and "give a wheel with --wheel FILE" in done.stderr and not world.calls("gcloud")


def test_the_output_of_any_worker(world: World) -> None:
    for worker, place in (("0", "--node=0 --worker=0"), ("3", "--node=0 --worker=3"), ("all", "--node=all --worker=all")):
        assert f" {place} " in world.run("tpu_vm/tpu.sh", "logs", *SLICE, "--worker", worker, "--dry-run").stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("babysit", *SLICE, "--workdir", "/data/run", "--", "jaxenc"), "a new slice has empty disks; write gs://BUCKET/my-run"),
        (("create", "--name", "r", "--zone", "z"), "create needs --type and --version"),
        (("create", *SLICE, "--reserved"), "give one of --spot, --reserved and --best-effort"),
        (("setup", *SLICE, "--wheel", "no.whl"), "--wheel is no.whl: there is no such file"),
        (("logs", *SLICE, "--worker", "one"), "--worker is 'one': a number from 0, or all"),
        (("create", "--name", "r"), "--zone is missing"),
        (("fly", "--name", "r"), "fly: the verbs are create, setup, run"),
    ],
)
def test_impossible_options_are_refused_in_one_line(world: World, arguments: tuple[str, ...], message: str) -> None:
    done = world.run("tpu_vm/tpu.sh", *arguments)
    assert done.returncode == 2 and re.fullmatch(r"tpu\.sh: .*\n", done.stderr) and message in done.stderr
    assert not world.calls()
