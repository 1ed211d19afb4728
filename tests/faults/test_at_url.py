"""A run whose work directory is at a URL, killed in its steps, saves, uploads and deletions, ends bit for bit like a run that nobody
killed. tests/checkpoint/test_remote.py has each kill of an upload by itself."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.storage import folder
from tests import bucket
from tests.faults.alone import EVERY, STEPS, Nano
from tests.faults.at_url import ended, lived, start, two
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run

STAGES = ("step", "copied", "state", "files", "checksums", "sent", "renamed", "put-begun", "put-done", "rm-begun", "rm-done", "evaluation")
FSDP = ("--config.mesh.preset=fsdp", "--config.train.steps=30")


def command(nano: Nano, url: str, *overrides: str) -> tuple[object, ...]:
    return ("pretrain", "--config", nano.config, "--workdir", url, *overrides)


@pytest.mark.slow
def test_killed_at_the_last_file_of_an_upload_and_in_a_deletion(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], url: str, tmp_path: Path, row: Table
) -> None:
    run, notes = command(nanos("mlm"), url), tmp_path / "notes"
    lived(run, notes, "kill", "put-begun", 2)
    steps = RemoteSteps(folder(f"{url}/checkpoints"))
    assert steps.steps() == [EVERY]
    said = lived(run, notes, "kill", "rm-done", 1)
    assert f"{url}/checkpoints/{2 * EVERY}: half-written" in said and f"resume {url}/checkpoints/{EVERY}\n" in said
    assert steps.steps() == [2 * EVERY, 3 * EVERY, 4 * EVERY]
    said = lived(run, notes)
    assert f"{url}/checkpoints/{EVERY}: half-written" in said and f"resume {url}/checkpoints/{4 * EVERY}\n" in said
    assert_same_run(undisturbed_alone("mlm"), bucket.at(url), 0, STEPS)
    row("work directory at a URL: kill -9 in an upload and in a deletion", 2, "bit for bit")


@pytest.mark.full
def test_killed_ten_times(nanos: Callable[..., Nano], undisturbed_alone: Callable[..., Path], url: str, tmp_path: Path, row: Table) -> None:
    """Half of the starts have lost this machine's copy: they are another machine."""
    steps, draw = 200, random.Random(22)
    nano, kills, runs, idle = nanos("mlm", steps), 0, 0, 0
    while kills < 10 or not runs:
        place = f"{url}-{runs}"
        while True:
            cache = tmp_path / f"cache-{draw.randrange(2)}"
            accident = ("kill", draw.choice(STAGES), draw.randrange(1, 4)) if kills < 10 else ("nothing", "-", 1)
            with start(command(nano, place), tmp_path / "notes", accident, JAXENC_CACHE=str(cache)) as process:
                said = process.communicate(timeout=300)[1]
            if process.returncode == 0:
                break
            assert process.returncode == -9, said
            kills, idle = kills + 1, idle + 1
            assert idle <= 20, said
        assert_same_run(undisturbed_alone("mlm", steps), bucket.at(place), 0, steps)
        runs += 1
    row("work directory at a URL: kill -9", kills, f"{runs} of {runs} runs bit for bit")


@pytest.mark.full
def test_two_machines_without_a_shared_disk(nanos: Callable[[str], Nano], url: str, tmp_path: Path, row: Table) -> None:
    """Killed at the last file of the second checkpoint and started again, on machines that have lost their disks. In the short suite
    tests/checkpoint/test_unshared.py saves so."""
    nano = nanos("mlm")
    with two(command(nano, f"{url}-whole", *FSDP), tmp_path / "whole") as gang:
        codes, said = ended(gang)
        assert codes == [0, 0], said
    with two(command(nano, url, *FSDP), tmp_path / "first", ("kill", "put-begun", 2)) as gang:
        codes, said = ended(gang)
        assert codes[0] == -9 and codes[1] != 0, said
    assert RemoteSteps(folder(f"{url}/checkpoints")).steps() == [EVERY]
    with two(command(nano, url, *FSDP), tmp_path / "second") as gang:
        codes, said = ended(gang)
        assert codes == [0, 0] and f"resume {url}/checkpoints/{EVERY}\n" in said[0], said
    assert_same_run(bucket.at(f"{url}-whole"), bucket.at(url), 0, 30)
    row("two machines without a shared disk: kill -9 in an upload", 1, "bit for bit")
