"""Which model a folder of fine-tuning at a URL stands for: the one that its copy on this machine stands for."""

import json
import shutil
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import results
from jaxenc.tasks.kept import kept, step_of
from jaxenc.tasks.results import Outcome, Results
from tests import bucket


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two seeds, of which the second is better; its step 20 was kept."""
    seeds = tuple(Outcome(seed, f"seed_{seed}", step, {"accuracy": score}) for seed, step, score in ((0, 10, 0.5), (1, 20, 0.75)))
    for one in seeds:
        (tmp_path / "tuned" / one.directory / "checkpoints" / "30").mkdir(parents=True)
        (tmp_path / "tuned" / one.directory / "checkpoints" / "30" / "config.json").write_text("{}")
        one.write(tmp_path / "tuned" / one.directory / results.RESULT)
    (tmp_path / "tuned" / results.NAME).write_text(json.dumps(Results("accuracy", seeds).to_json()))
    return tmp_path / "tuned"


@pytest.mark.parametrize("below", ["", "/seed_0", "/seed_0/checkpoints/30"])
def test_the_same_model_is_kept(below: str, folder: Path, bucket_url: str) -> None:
    url = f"{bucket_url}/tuned"
    shutil.copytree(folder, bucket.at(url))
    here, why = kept(f"{folder}{below}")
    assert kept(f"{url}{below}") == (str(here).replace(str(folder), url), why)
    if not below:
        assert kept(url, 0) == (f"{url}/seed_0/checkpoints/10", "")
        with pytest.raises(UserError, match=rf"--seed 7: {url} has no such seed; use one of 0, 1"):
            kept(url, 7)


@pytest.mark.parametrize(
    "name",
    [
        "jaxenc-test://b/run",
        "jaxenc-test://b/run/",
        "jaxenc-test://b/run/checkpoints/10",
        "jaxenc-test://b/run/checkpoints",
        "run",
        "run/checkpoints/10",
        "checkpoints/10",
    ],
)
def test_another_step_is_of_the_same_run(name: str) -> None:
    folder = name if "://" in name else Path(name)
    run = name.rstrip("/").removesuffix("10").rstrip("/").removesuffix("checkpoints").rstrip("/")
    assert str(step_of(folder, 20)) == f"{run}/checkpoints/20".lstrip("/")
