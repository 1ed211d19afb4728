"""A fine-tuning whose work directory and model are at URLs, killed at any moment, ends bit for bit like one in a folder that nobody
killed."""

import shutil
from pathlib import Path

import pytest

from jaxenc.checkpoint.remote import RemoteSteps
from jaxenc.storage import folder
from tests import bucket
from tests.faults.at_url import ended, lived, two, with_devices
from tests.faults.conftest import Table
from tests.faults.same import assert_same_tuning
from tests.faults.test_finetune_killed import STEPS, command
from tests.tasks.tiny_task import make_model, make_task

# (stage, the n-th time, whether the next start is on another machine). In the first seed: at the last file of an upload, in an evaluation,
# before the answers are uploaded, in the deletion of old steps, and before the result. Then in results.json, and in the second seed.
KILLS = [
    ("put-begun", 1, False), ("evaluation", 2, True), ("answers-begun", 1, False), ("rm-done", 1, True), ("result-begun", 1, False),
    ("results-begun", 1, True), ("state", 2, True), ("result-done", 1, True),
]  # fmt: skip


@pytest.mark.full
def test_killed_in_both_seeds(url: str, tmp_path: Path, row: Table) -> None:
    make_task(tmp_path, train=64, dev=23)
    make_model(model := tmp_path / "model")
    shutil.copytree(model, bucket.at(f"{url}-model"))
    whole, run, notes = tmp_path / "whole", command(url, f"{url}-model", tmp_path), tmp_path / "notes"
    lived(command(whole, model, tmp_path), notes, **with_devices(1))
    machine = 0
    for stage, count, moves in KILLS:
        lived(run, notes, "kill", stage, count, JAXENC_CACHE=str(tmp_path / f"cache-{machine}"), **with_devices(1))
        machine += moves
    said = lived(run, notes, JAXENC_CACHE=str(tmp_path / f"cache-{machine}"), **with_devices(1))
    assert f"{url}/seed_0: finished; nothing to do" in said and f"{url}/seed_1: finished; nothing to do" in said
    assert_same_tuning(whole, bucket.at(url), STEPS)
    assert (bucket.at(url) / "results.json").is_file() and not (bucket.at(url) / ".lease.json").exists()
    row("fine-tuning at a URL: kill -9, half of the starts on another machine", len(KILLS), "bit for bit, both seeds")


@pytest.mark.full
def test_two_machines_without_a_shared_disk(url: str, tmp_path: Path, row: Table) -> None:
    """Each has a copy of the model too. Killed at the last file of the second checkpoint of the second seed."""
    make_task(tmp_path, train=64, dev=23)
    make_model(tmp_path / "model")
    shutil.copytree(tmp_path / "model", bucket.at(f"{url}-model"))
    with two(command(f"{url}-whole", f"{url}-model", tmp_path), tmp_path / "first", devices=1) as gang:
        codes, said = ended(gang)
        assert codes == [0, 0], said
    run = command(url, f"{url}-model", tmp_path)
    with two(run, tmp_path / "second", ("kill", "put-begun", 5), devices=1) as gang:
        codes, said = ended(gang)
        assert codes[0] == -9 and codes[1] != 0, said
    assert RemoteSteps(folder(f"{url}/seed_1/checkpoints")).steps() == [4]
    with two(run, tmp_path / "third", devices=1) as gang:
        codes, said = ended(gang)
        assert codes == [0, 0] and f"resume {url}/seed_1/checkpoints/4\n" in said[0], said
    assert_same_tuning(bucket.at(f"{url}-whole"), bucket.at(url), STEPS)
    row("fine-tuning on two machines without a shared disk: kill -9 in an upload", 1, "bit for bit, both seeds")
