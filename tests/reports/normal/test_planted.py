"""Planted faults, really trained, are each named; healthy runs, also of unusual settings, bring no warning. `planted.py` made them."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from jaxenc.data.sources import DataConfig
from jaxenc.findings import OK, PROBLEM, Finding
from jaxenc.reports.normal.comments import comments
from jaxenc.reports.normal.text import Text
from tests.reports.normal import planted

RUNS = Path(__file__).parent / "runs"
# {run: (the check that names its fault, other checks that may follow from it)}
NAMED = {
    "plateau": ("plateau", set()),
    "divergence": ("divergence", {"learning rate too high", "learning rate too low"}),
    "generator_too_strong": ("generator too strong", set()),
    "masking_rate_off": ("masking rate", set()),
    "masking_rate_80": ("masking rate", set()),
    "learning_rate_too_high": ("learning rate too high", {"divergence"}),
    "learning_rate_too_low": ("learning rate too low", set()),
    "data_repeated": ("data repeated", set()),
}


# Runs of real size, on an H200 whose card and time they shared with others: the reference curves are of them. The first was slowed down
# by others in the end, which is said.
MEASURED = {"bert_small_h200": {"speed"}, "electra_small_h200": set()}


def said(name: str, folder: Path = RUNS) -> list[Finding]:
    """The comments on a stored run, with the facts of its text that were stored beside it."""
    text = Text(**json.loads((folder / name / "text.json").read_text()))

    def read(data: DataConfig) -> Text:
        return text

    return [one for one in comments(folder / name, read) if one.level != OK]


def test_every_case_is_stored() -> None:
    assert {folder.name for folder in RUNS.iterdir()} == {*planted.CASES, *MEASURED} and set(NAMED) == set(planted.PLANTED)
    assert sum(path.stat().st_size for path in RUNS.rglob("*") if path.is_file()) < 1_000_000


@pytest.mark.parametrize("name", NAMED)
def test_a_planted_fault_is_named(name: str) -> None:
    own, others = NAMED[name]
    found = [one.check for one in said(name)]
    assert own in found and set(found) <= {own, *others}, found


@pytest.mark.parametrize("name", [*planted.HEALTHY, *planted.ODD])
def test_a_healthy_run_brings_no_warning(name: str) -> None:
    assert not said(name)


@pytest.mark.parametrize("name", MEASURED)
def test_nor_does_one_of_real_size(name: str) -> None:
    assert {one.check for one in said(name)} == MEASURED[name]


@pytest.mark.parametrize("name", [*planted.HEALTHY, *planted.ODD, *MEASURED])
@pytest.mark.parametrize("share", [0.15, 0.4, 0.7])
def test_nor_does_a_healthy_run_that_is_on_its_way(name: str, share: float, tmp_path: Path) -> None:
    """As a user looks at it while it runs."""
    shutil.copytree(RUNS / name, tmp_path / name)
    lines = (RUNS / name / "metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / name / "metrics.jsonl").write_text("".join(lines[: int(share * len(lines))]))
    assert {one.check for one in said(name, tmp_path)} <= MEASURED.get(name, set())


def test_only_a_run_that_cannot_recover_is_a_problem() -> None:
    levels = {name: {one.level for one in said(name)} for name in NAMED}
    assert {name for name, found in levels.items() if PROBLEM in found} <= {"divergence", "learning_rate_too_high"}
    assert PROBLEM in levels["divergence"]


@pytest.mark.full
def test_a_fault_that_is_planted_anew_is_named(tmp_path: Path) -> None:
    """Trained here, on the text of this machine."""
    planted.run(planted.CASES["masking_rate_off"], "masking_rate_off", tmp_path)
    assert [one.check for one in said("masking_rate_off", tmp_path)] == ["masking rate"]
    config = json.loads((tmp_path / "masking_rate_off" / "config.json").read_text())
    assert dataclasses.asdict(planted.CASES["masking_rate_off"])["fields"]["train.steps"] == config["train"]["steps"]
