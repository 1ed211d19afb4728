"""The curves that are shipped, and how a run finds the one that it is compared with."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jaxenc.objectives import OBJECTIVES
from jaxenc.reports.normal import evidence, reference
from jaxenc.reports.normal.reference import Reference, nearest, references
from tests.reports.normal import histories
from tests.reports.normal.histories import COUNTS, changed, falling

ROOT = Path(__file__).parents[3]
KNOWN = references()


@pytest.mark.parametrize("one", KNOWN, ids=[one.recipe for one in KNOWN])
def test_a_curve_says_where_it_is_from_and_falls(one: Reference) -> None:
    assert (ROOT / "configs" / f"{one.recipe}.py").is_file() and one.objective in evidence.LOSSES
    told = (one.corpus, one.hardware, one.versions, one.date, one.command, one.tokenizer["type"], one.tokenizer["size"])
    assert all(told) and one.command.startswith("jaxenc pretrain --config ")
    assert len(one.step) == len(one.positions) >= 5 and list(one.step) == sorted(set(one.step)) and one.step[-1] <= one.steps
    assert all(len(values) == len(one.step) for values in one.curves.values())
    assert one.loss[-1] < one.loss[0] < one.counts["unigram"] + 0.5


def test_every_family_has_a_curve() -> None:
    assert {one.model["kind"] for one in KNOWN} >= {"bert", "electra", "xlnet", "elmo", "albert", "gpt", "distilbert"}
    assert set(evidence.LOSSES) <= set(OBJECTIVES)


def test_positions_do_not_depend_on_the_text() -> None:
    """Twice as many nats everywhere, as a text of twice the tokens a word has half: the same place."""
    doubled = {name: 2 * nats for name, nats in COUNTS.items()}
    assert evidence.position(8.0, doubled, "mlm") == evidence.position(4.0, COUNTS, "mlm") == 1.5
    assert [evidence.position(COUNTS[name], COUNTS, "mlm") for name in ("unigram", "left_right")] == [0, 1]
    assert evidence.position(5.5, COUNTS, "causal") == 1


def test_a_curve_is_read_between_its_points() -> None:
    one = histories.reference()  # 0.2, 0.6, 1.2, 1.8 after each 204,800 tokens
    assert math.isnan(one.at(100_000)) and one.at(204_800) == pytest.approx(0.2) and one.at(1e9) == pytest.approx(1.8)
    middle = 204_800 * math.sqrt(2)
    assert one.at(middle) == pytest.approx(0.4) and one.leaves == pytest.approx(middle) and reference.BEYOND == 0.4
    assert histories.reference((0.1, 0.2)).leaves == math.inf and histories.reference((0.5, 0.9)).leaves == 204_800


def test_the_nearest_has_the_objective_then_the_kind_then_the_size() -> None:
    run = histories.history(falling)
    small, large, other = (
        histories.reference(model=model)
        for model in (
            {"kind": "bert", "width": 128, "layers": 2},
            {"kind": "bert", "width": 512, "layers": 4},
            {"kind": "gpt", "width": 64, "layers": 2},
        )
    )
    assert nearest(run, [large, other, small]) is small and nearest(run, [other]) is other
    assert nearest(run, [histories.reference(objective="plm")]) is None
    base = changed(run, model={"kind": "bert", "width": 768, "layers": 12})
    assert nearest(base, [large, other, small]) is large
    assert nearest(changed(run, model={"kind": "mine", "width": "wide"}), [large, small]) in (large, small)


def test_the_curves_are_shipped() -> None:
    """By the list of setup.py, which names a pattern: every file fits it."""
    assert 'package_data={"jaxenc.reports.normal": ["curves/*.json"]}' in (ROOT / "setup.py").read_text()
    files = {path.suffix for path in (ROOT / "jaxenc" / "reports" / "normal" / "curves").iterdir()}
    assert files == {".json"}


def test_the_table_of_the_page_is_that_of_the_curves() -> None:
    script = [sys.executable, str(ROOT / "docs" / "reference_curves.py"), "table"]
    table = subprocess.run(script, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert table in (ROOT / "docs" / "normal.md").read_text()


def test_positions_of_two_families_by_hand() -> None:
    by = {one.recipe: one for one in KNOWN}
    assert np.round(by["bert/small"].positions[[0, -1]], 2).tolist() == [0.49, 2.10]  # (6.991 - 5.963) / 2.114, (6.991 - 2.558) / 2.114
    assert np.round(by["gpt/small"].positions[-1], 2) == 2.04  # (7.196 - 3.80) / (7.196 - 5.533)
