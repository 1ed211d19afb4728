"""What holds for every script of launch/: shellcheck, its length, its head, and a dry run that is what would run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.world import AWKWARD, LAUNCH, ROOT, SCRIPTS, World

NAMES = [str(script.relative_to(LAUNCH)) for script in SCRIPTS]
SLICE = ("--name", "r", "--zone", "z", "--type", "v5litepod-16", "--version", "v")
# Every verb that starts something, with what it needs before --.
STARTS = [
    ("tpu_vm/tpu.sh", "create", *SLICE),
    ("tpu_vm/tpu.sh", "setup", *SLICE, "--wheel", "it's a.whl"),
    ("tpu_vm/tpu.sh", "run", *SLICE),
    ("tpu_vm/tpu.sh", "status", *SLICE),
    ("tpu_vm/tpu.sh", "logs", *SLICE),
    ("tpu_vm/tpu.sh", "stop", *SLICE),
    ("tpu_vm/tpu.sh", "delete", *SLICE),
    ("gke/jobset.sh", "run", "--name", "r", "--image", "i", "--tpu", "t", "--topology", "4x4"),
    ("gke/jobset.sh", "run", "--name", "r", "--image", "i", "--nodes", "2", "--gpu", "g"),
    ("gke/jobset.sh", "stop", "--name", "r"),
    ("gke/jobset.sh", "logs", "--name", "r"),
    ("gke/xpk.sh", "--name", "r", "--cluster", "c", "--zone", "z", "--type", "v5litepod-16", "--image", "i", "--spot"),
    ("slurm/slurm.sh", "run", "--name", "r", "--nodes", "4"),
    ("slurm/slurm.sh", "status", "--name", "r"),
    ("slurm/slurm.sh", "delete", "--name", "r"),
    ("docker/docker.sh", "build", "--name", "r", "--image", "i", "--accelerator", "tpu"),
    ("docker/docker.sh", "run", "--name", "r", "--image", "i"),
    ("docker/docker.sh", "stop", "--name", "r"),
    ("keep_running.sh",),
    ("docker/entrypoint.sh",),
]


@pytest.mark.parametrize("name", NAMES)
def test_shellcheck_finds_nothing(name: str) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is missing: pip install 'jaxenc[dev]'")
    done = subprocess.run([shellcheck, "--external-sources", LAUNCH / name], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short_and_says_at_its_head_what_it_does(name: str) -> None:
    lines = (LAUNCH / name).read_text().splitlines()
    assert len(lines) <= 120 and max(map(len, lines)) <= 160
    assert len([line for line in lines[:4] if line.startswith("# ")]) >= 2


@pytest.mark.parametrize("start", STARTS, ids=lambda start: " ".join(start[:2]))
def test_a_dry_run_prints_what_runs_and_runs_nothing(world: World, start: tuple[str, ...]) -> None:
    """Pasted into a shell, what is printed makes the very calls that the script makes."""
    script, *options = start
    workdir = [] if script == "docker/entrypoint.sh" else ["--workdir", "gs://b/it's $a run"]
    command = ["--", *AWKWARD] if workdir else list(AWKWARD)
    for name in ("it's a.whl", "agreeable"):
        (world.folder / name).touch()
    dry = world.run(script, *options, *workdir, "--dry-run", *command)
    assert dry.returncode == 0, dry.stderr
    assert not world.calls("gcloud", "kubectl", "sbatch", "srun", "scontrol", "scancel", "xpk", "docker") and not world.given()
    recorded = []
    for again in (lambda: world.run(script, *options, *workdir, *command), lambda: world.bash("-c", dry.stdout)):
        world.forget()
        again()
        manifest = world.folder / "manifest.yaml"
        recorded.append((world.calls(), world.given(), manifest.read_text() if manifest.exists() else ""))
    assert recorded[0] == recorded[1] and (recorded[0][0] or recorded[0][1])


@pytest.mark.parametrize("script", ["tpu_vm/tpu.sh", "gke/jobset.sh", "slurm/slurm.sh", "docker/docker.sh"])
def test_help_is_the_head_and_an_unknown_option_names_those_that_there_are(world: World, script: str) -> None:
    assert "--name RUN" in world.run(script, "--help").stdout
    done = world.run(script, "delete", "--name", "r", "--nam", "x")
    assert done.returncode == 2 and re.search(r"--nam: the options are .*--name .*--workdir .*--dry-run", done.stderr)


def test_the_quickstart_takes_no_option_for_a_folder(world: World) -> None:
    assert "[WORKDIR]" in world.run("quickstart.sh", "--help").stdout
    done = world.run("quickstart.sh", "--dry-run")
    assert done.returncode == 2 and done.stderr == "quickstart: --dry-run: it takes a work directory and no options\n"


@pytest.mark.parametrize(
    "options, message",
    [
        (("--", "jaxenc"), "--workdir is missing"),
        (("--workdir", "a"), "no command after --"),
        (("--workdir", "a", "--", "jaxenc", "--workdir=b"), "--workdir is a, and b in the command"),
        (("--workdir",), "--workdir needs a value"),
        (("--workdir", "--dry-run", "--", "jaxenc"), "--workdir needs a value"),
        (("--name workdir", "a"), "--name workdir: the options are --name --workdir "),
        (("--cpu!",), "--cpu!: the options are"),
        (("--workdir", "a", "--nodes", "99999999999999999999", "--", "jaxenc"), "--nodes is '99999999999999999999': a whole number"),
    ],
)
def test_the_common_options(world: World, options: tuple[str, ...], message: str) -> None:
    done = world.run("slurm/slurm.sh", "run", "--name", "r", *options)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1 and not world.calls()


def test_a_value_that_looks_like_an_option_is_written_with_an_equals_sign(world: World) -> None:
    done = world.run("slurm/slurm.sh", "run", "--name", "r", "--workdir", "/w", "--partition=--odd", "--dry-run", "--", "jaxenc")
    assert " --partition=--odd " in done.stdout


@pytest.mark.parametrize("verb", ["run status", "delete ", "*", "start"])
def test_what_is_no_verb_is_refused(world: World, verb: str) -> None:
    done = world.run("slurm/slurm.sh", verb, "--name", "r")
    assert done.returncode == 2 and done.stderr.startswith(f"slurm.sh: {verb}: the verbs are run, status, ") and not world.calls()


def test_a_workdir_in_the_command_is_enough(world: World) -> None:
    done = world.run("slurm/slurm.sh", "run", "--name", "r", "--dry-run", "--", "jaxenc", "--workdir=/w")
    assert done.stdout.endswith("gpu /w jaxenc --workdir=/w\n")
