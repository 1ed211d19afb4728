"""Which model a folder of fine-tuning at a URL stands for: the one that its copy on this machine stands for."""

import json
import shutil
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.reports.history import expanded
from jaxenc.reports.report import is_tuning
from jaxenc.tasks import results
from jaxenc.tasks.kept import kept, step_of
from jaxenc.tasks.results import Outcome, Results, of_other_seeds, seeds_in
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


@pytest.mark.parametrize("at_url", [False, True])
@pytest.mark.parametrize("kind", ["checkpoints", "config.json", "metrics.jsonl"])
def test_a_run_directory_stands_for_itself_whatever_else_it_holds(
    kind: str, at_url: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as seed_1, or a results.json of the user: `kept`, report and watch take it as the run that it is."""
    monkeypatch.setenv("JAXENC_TEST_BUCKET", "")
    url = bucket.register(tmp_path / "bucket") + "b/tuned"
    (folder / kind).touch()
    shutil.copytree(folder, bucket.at(url))
    place = url if at_url else folder
    assert str(kept(place)[0]) == str(place) and expanded([place]) == [str(place)] and not is_tuning(place)
    with pytest.raises(UserError, match=f"^--seed 1: {place} is not a folder of several seeds; leave it out$"):
        kept(place, 1)


def test_seeds_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """What is no name of a seed is none: a copy, zeros in front, digits of other scripts."""
    names = ["seed_10", "seed_2", "seed_1", "seed_0_backup", "seed_007", "seed_", "seed_-1", "seed_\N{ARABIC-INDIC DIGIT THREE}", "seeds"]
    assert seeds_in(names) == ["seed_1", "seed_2", "seed_10"]
    for seed in (2, 10):
        (tmp_path / f"seed_{seed}").mkdir()
        Outcome(seed, "", 1, {"accuracy": 0.5}).write(tmp_path / f"seed_{seed}" / results.RESULT)
    shutil.copytree(tmp_path / "seed_2", tmp_path / "seed_3_backup")
    Outcome(3, "", 1, {"accuracy": 1.0}).write(tmp_path / "seed_3_backup" / results.RESULT)
    assert [one.seed for one in of_other_seeds(tmp_path, ())] == [2, 10]


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
