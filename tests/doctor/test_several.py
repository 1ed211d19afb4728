"""Real processes, under launch/local.sh: a healthy pair, a pair with faults, a pair that was told other counts."""

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from tests.faults.gang import Gang


def test_two_healthy_processes_have_no_problem(data: Path, tmp_path: Path) -> None:
    """And nothing is written, not even a compiled program."""
    given = ("--workdir", tmp_path / "run", "--data", data, "--verify", "--config", "bert/tiny")
    (tmp_path / "compiled").mkdir()
    command = (sys.executable, "-m", "jaxenc", "doctor", *given)
    with Gang(2, 1, command, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "compiled")) as gang:
        assert gang.end() == 0, gang.said
    for line in (
        "[0] ok       processes: 2 of 2 came, on 1 host (",
        "the same in 2 processes",
        "[0] ok       devices: 2 x cpu, 1 a process, ",
        "[0] ok       clock: those of 2 processes agree, as far as can be seen in ",
        "by 2 processes, one folder for all",
        "GB are free, a checkpoint takes up to 0.0",
        "files, sizes and checksums, tokenizer, in processes 0, 1",
        "one folder for 2 processes",
        "[0] ok       all-reduce: 4.2 MB over 2 devices: exact, ",
        "[0] no problems, ",
    ):
        assert line in gang.said, (line, gang.said)
    assert "problem  " not in gang.said and not [line for line in gang.lines if line.startswith("[1]")], gang.said
    assert [path.name for path in tmp_path.rglob("*")] == ["compiled"]


def test_faults_of_one_of_two_processes_are_found(data: Path, tmp_path: Path) -> None:
    """Disks that are not shared, a slow clock, another version, a shard that is missing on one host, a GPU that JAX does not see."""
    for rank in ("0", "1"):
        shutil.copytree(data, tmp_path / rank / "data")
    (shard := min((tmp_path / "1" / "data").glob("train-*.tokens"))).unlink()
    (tmp_path / "machine" / "dev").mkdir(parents=True)
    (tmp_path / "machine" / "dev" / "nvidia0").touch()
    before = sorted(tmp_path.rglob("*"))
    with Gang(2, 1, (sys.executable, "-m", "tests.doctor.planted", tmp_path)) as gang:
        assert gang.end() == 0, gang.said
    problems = [line for line in gang.lines if line.startswith("[0] problem  ")]
    for pattern in (
        rf"versions: jax: {metadata.version('jax')} in process 0, 0.9.9 in process 1; install it alike on every host, such as `pip install",
        r"devices of here: 1 x NVIDIA GPU there, and JAX uses CPU only in processes 0, 1; JAX_PLATFORMS=cpu in process 0 hides them: unset",
        r"clock: process 1 is at least 1(19\.\d|20\.0) s behind process 0; turn on NTP on every host",
        r"workdir run: process 1 does not see the files that process 0 writes there; give all processes one --workdir on a disk",
        rf"data data: in process 1: 1 of \d+ files differ from the manifest: {shard.name} is missing; copy",
    ):
        assert any(re.search(pattern, line) for line in problems), (pattern, gang.said)
    assert len(problems) == 5 and "all-reduce: 4.2 MB over 2 devices: exact" in gang.said, gang.said
    assert sorted(tmp_path.rglob("*")) == before


def test_processes_started_with_other_counts_do_not_join(tmp_path: Path) -> None:
    """Nothing of jax meets: a run would wait for the third until it gives up."""
    told = f"JAXENC_PROCESSES=$((2 + JAXENC_PROCESS)) exec {sys.executable} -m jaxenc doctor"
    with Gang(2, 1, ("bash", "-c", told)) as gang:
        assert gang.end() == 2, gang.said
    for rank in range(2):
        line = f"[{rank}] problem  processes: process 0 was started as one of 2, process 1 as one of 3; start all with one JAXENC_PROCESSES"
        assert line in gang.lines, gang.said
