"""Work directories of every kind: young, cut off, damaged, at a URL, of a fine-tuning, of a family that only its user's code knows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fsspec
import pytest

from jaxenc.data.sources import DataConfig
from jaxenc.findings import OK, WARNING
from jaxenc.reports.normal.comments import comments
from jaxenc.reports.normal.text import Text
from tests.reports.normal.histories import COUNTS, falling

CONFIG = {
    "format": 2,
    "objective": {"kind": "mlm", "rate": 0.15},
    "model": {"kind": "bert", "width": 64, "layers": 2},
    "data": {"path": "data", "length": 32},
    "train": {"steps": 400, "batch": 64},
    "optim": {"warmup": 40},
}


def facts(data: DataConfig) -> Text:
    return Text(COUNTS, 1_000_000)


def workdir(folder: Path, rows: int, **parts: Mapping[str, Any]) -> Path:
    """A run that has written so many training rows; parts: of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **parts}))
    steps = range(10, 10 * rows + 1, 10)
    lines = [json.dumps({"step": step, "split": "train", "loss": falling(step), "mlm_loss": falling(step)}) for step in steps]
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_a_folder_in_which_nothing_has_trained_says_nothing(tmp_path: Path) -> None:
    assert comments(tmp_path) == () and comments(tmp_path / "none") == ()


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_few_rows_are_not_judged(rows: int, tmp_path: Path) -> None:
    (only,) = comments(workdir(tmp_path, rows), facts)
    assert only.level == OK and only.what == f"{rows} rows of training numbers up to step {10 * rows}: too few to judge"


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = workdir(tmp_path, 40) / "metrics.jsonl"
    whole = comments(tmp_path, facts)
    path.write_bytes(path.read_bytes() + b'{"step": 410, "split": "tra')
    assert comments(tmp_path, facts) == whole and whole[0].what.startswith("mlm_loss 4.00 at step 400 of 400")


def test_what_cannot_be_read_is_one_line_with_its_place(tmp_path: Path) -> None:
    path = workdir(tmp_path, 40) / "metrics.jsonl"
    path.write_text("no row\n" + path.read_text())
    (only,) = comments(tmp_path, facts)
    assert only.level == WARNING and f"not judged: {path}:1: is not a row of numbers" in only.what
    workdir(tmp_path, 40)
    (tmp_path / "config.json").unlink()
    (only,) = comments(tmp_path, facts)
    assert only.level == WARNING and "config.json: No such file" in only.what


def test_a_fine_tuning_is_not_judged(tmp_path: Path) -> None:
    (only,) = comments(workdir(tmp_path, 40, objective={"kind": "heads"}), facts)
    assert only.level == OK and only.what == "objective.kind=heads is not judged: reference curves are of pretraining"


def test_a_family_of_the_users_own_is_compared_by_its_objective(tmp_path: Path) -> None:
    found = comments(workdir(tmp_path, 40, model={"kind": "mine", "cells": 7}), facts)
    assert [one.level for one in found] == [OK] and "bert/" in found[0].what


@pytest.mark.parametrize(
    "data, missing",
    [
        ({"path": "gs://bucket/data"}, "which is not read here"),
        ({"mixture": ["a", "b"]}, "names 2 folders"),
        ({"path": "gone"}, "gone/manifest.json"),
    ],
)
def test_without_the_text_the_line_says_why(data: Mapping[str, Any], missing: str, tmp_path: Path) -> None:
    found = comments(workdir(tmp_path, 40, data={"length": 32, **data}))
    assert [one.level for one in found] == [OK] and "no count baselines" in found[0].what and missing in found[0].what


def test_a_run_at_a_url_is_read_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here, store = workdir(tmp_path / "run", 40), fsspec.filesystem("memory")
    assert comments("memory://bucket/normal") == ()
    store.put(str(here), "/bucket/normal", recursive=True)
    assert comments("memory://bucket/normal", facts) == comments(here, facts)


def test_phases_count_their_own_tokens(tmp_path: Path) -> None:
    phases = {"steps": [100, 300], "length": [32, 64], "batch": [64, 16]}
    found = comments(workdir(tmp_path, 40, phases=phases), facts)
    assert f"{(100 * 32 * 64 + 300 * 64 * 16) / 1e6:.1f} M tokens" in found[0].what


@pytest.mark.parametrize("part", ["objective", "model"])
def test_a_part_of_the_config_that_holds_no_fields_is_a_finding(part: str, tmp_path: Path) -> None:
    (only,) = comments(workdir(tmp_path, 40, **{part: [1]}), facts)
    assert only.level == WARNING and f"config.{part} is [1]" in only.what


def test_counts_in_the_wrong_order_are_no_scale(tmp_path: Path) -> None:
    """As of held-out text unlike the training text: no position, and no loss that is called too low."""
    wrong = lambda data: Text(counts={"unigram": 7.3, "left": 9.0, "left_right": 22.2})
    found = comments(workdir(tmp_path, 40), wrong)
    assert [one.level for one in found] == [OK] and "no better than word frequencies" in found[0].what
