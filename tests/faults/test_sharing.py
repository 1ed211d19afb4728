"""launch/local.sh shares out the GPUs of a machine: what its dry run prints beside a fake nvidia-smi, and what its processes get."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.gang import LAUNCHER

# Variables of this test run that the launcher would pass on.
OURS = ("CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL")


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with four GPUs."""
    fake = tmp_path / "nvidia-smi"
    listed = "".join(f"echo 'GPU {n}: NVIDIA H200 (UUID: GPU-{n}{n})'\n" for n in range(4))
    fake.write_text(f'#!/bin/sh\n[ "$1" = -L ] || exit 1\n{listed}')
    fake.chmod(0o755)
    return {**{name: value for name, value in os.environ.items() if name not in OURS}, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def dry(environment: dict[str, str], *options: str) -> tuple[int, list[str], str]:
    """(exit code, lines, what was said on stderr) of a dry run of `touch here 'a b'`."""
    command = ["bash", str(LAUNCHER), *options, "--dry-run", "--", "touch", "here", "a b"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout.splitlines(), done.stderr


def gpus(lines: list[str]) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each process."""
    return [re.search(r" CUDA_VISIBLE_DEVICES=(\S*)", line)[1] for line in lines]


@pytest.mark.parametrize(
    "options, shares, said",
    [
        ([], ["0", "1", "2", "3"], ""),
        (["--procs", "4"], ["0", "1", "2", "3"], ""),
        (["--procs", "2"], ["0,1", "2,3"], ""),
        (["--procs", "1"], ["0,1,2,3"], ""),
        (["--gpus-per-proc", "2"], ["0,1", "2,3"], ""),
        (["--procs", "3", "--gpus-per-proc", "1"], ["0", "1", "2"], "local: 1 of 4 GPUs are idle\n"),
        (["--procs", "1", "--gpus-per-proc", "3"], ["0,1,2"], "local: 1 of 4 GPUs are idle\n"),
    ],
)
def test_the_gpus_are_shared_out_evenly(machine: dict[str, str], options: list[str], shares: list[str], said: str) -> None:
    code, lines, stderr = dry(machine, *options)
    assert (code, gpus(lines), stderr) == (0, shares, said)
    begins = [f"JAXENC_COORDINATOR=127.0.0.1:PORT JAXENC_PROCESSES={len(shares)} JAXENC_PROCESS={rank} " for rank in range(len(shares))]
    assert all(line.startswith(begin) and line.endswith(r" touch here a\ b") for line, begin in zip(lines, begins, strict=True))
    assert all("JAX_PLATFORMS" not in line for line in lines)


@pytest.mark.parametrize("given, shares", [("3,GPU-11", ["3", "GPU-11"]), ("0, 2", ["0", "2"]), ("1,-1,2", ["1"])])
def test_gpus_that_are_given_are_those_that_are_shared(machine: dict[str, str], given: str, shares: list[str]) -> None:
    """CUDA reads the list up to the first that is no GPU."""
    assert gpus(dry({**machine, "CUDA_VISIBLE_DEVICES": given})[1]) == shares


@pytest.mark.parametrize(
    "options, advice",
    [
        (["--procs", "5"], "5 processes and 4 GPUs: --procs 4 at most, or --cpu"),
        (["--procs", "3"], "3 processes do not divide 4 GPUs: another --procs, or also --gpus-per-proc 1"),
        (["--gpus-per-proc", "3"], "3 GPUs a process do not divide 4: give --procs too, at most 1"),
        (["--gpus-per-proc", "5"], "1 processes of 5 GPUs, and there are 4: lower"),
        (["--procs", "3", "--gpus-per-proc", "2"], "3 processes of 2 GPUs, and there are 4: lower"),
        (["--gpus-per-proc", "1", "--cpu"], "--gpus-per-proc and --cpu: one of them"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_with_advice(machine: dict[str, str], options: list[str], advice: str) -> None:
    code, lines, stderr = dry(machine, *options)
    assert code == 2 and not lines and stderr.startswith(f"local: {advice}") and stderr.count("\n") == 1


@pytest.mark.parametrize("options, devices", [(["--cpu"], 1), (["--cpu", "3"], 3), (["--devices-per-proc", "2"], 2)])
def test_cpus_are_asked_for_by_name_and_idle_gpus_are_named(machine: dict[str, str], options: list[str], devices: int) -> None:
    code, lines, stderr = dry(machine, *options, "--procs", "2")
    assert code == 0 and stderr == "local: 4 GPUs of this machine are idle: the processes use CPUs, as asked\n"
    assert all("JAX_PLATFORMS=cpu " in line and f"device_count={devices} touch" in line for line in lines)
    assert not any("CUDA_VISIBLE_DEVICES" in line for line in lines)


@pytest.mark.parametrize("hidden", ["", "-1", "NoDevFiles"])
def test_without_gpus_the_number_of_processes_is_asked_for(machine: dict[str, str], hidden: str) -> None:
    nowhere = {**machine, "CUDA_VISIBLE_DEVICES": hidden}
    assert dry(nowhere)[::2] == (2, "local: there are no GPUs here: write --procs N, or start the command without this launcher\n")
    assert dry(nowhere, "--gpus-per-proc", "1")[0] == 2
    begin = "JAXENC_COORDINATOR=127.0.0.1:PORT JAXENC_PROCESSES=2 JAXENC_PROCESS="
    assert dry(nowhere, "--procs", "2") == (0, [rf"{begin}{rank} touch here a\ b" for rank in range(2)], "")


def test_cpus_need_a_number_of_processes_too(machine: dict[str, str]) -> None:
    code, _, said = dry(machine, "--cpu", "2")
    assert code == 2 and said.endswith("\nlocal: --procs N is missing: the number of processes\n")


def test_what_the_user_has_set_stays(machine: dict[str, str]) -> None:
    assert dry({**machine, "XLA_FLAGS": "--xla_mine"}, "--procs", "1")[1][0].count("XLA_FLAGS") == 0
    assert r"XLA_FLAGS=--xla_mine\ --xla_force" in dry({**machine, "XLA_FLAGS": "--xla_mine"}, "--procs", "1", "--cpu")[1][0]


def test_a_process_has_what_the_dry_run_says(machine: dict[str, str]) -> None:
    """The variables of the dry run are those of the processes, which also run where the launcher was called."""
    show = "import os; print(' '.join(f'{n}={os.environ[n]}' for n in sorted(os.environ) if n.startswith(('JAXENC_PROC', 'CUDA', 'XLA'))))"
    command = ["bash", str(LAUNCHER), "--procs", "2", "--", sys.executable, "-c", show]
    done = subprocess.run(command, capture_output=True, text=True, env=machine, timeout=60)
    expected = [
        {f"CUDA_VISIBLE_DEVICES={share}", "JAXENC_PROCESSES=2", f"JAXENC_PROCESS={rank}"} for rank, share in ((0, "0,1"), (1, "2,3"))
    ]
    for rank, line in enumerate(sorted(done.stdout.splitlines())):
        assert line.startswith(f"[{rank}] ") and expected[rank] <= set(line.split()), done
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
