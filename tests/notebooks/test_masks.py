"""The notebook of masks: what it draws is what training would hide, at the configured rates, on any number of devices."""

from pathlib import Path

import pytest

from tests.notebooks.executed import execute

MASKED, RANDOM, SAME = "#56B4E9", "#E69F00", "#009E73"


@pytest.mark.full
def test_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("masks.ipynb", tmp_path)
    assert done.number(r"different masks in (\d+) of 8 steps") >= 7
    assert done.number(r"'single tokens \(BERT\)': (\d+)") > 0, "single tokens cut words"
    for unit in ("whole words", "n-grams", "spans"):
        assert done.number(rf"'{unit}[^']*': (\d+)") == 0, "whole units do not"
    # Of 2,000 rows, 56,000 tokens: BERT's rounding is systematic, RoBERTa's is fair to three deviations of the mean.
    assert abs(done.number(r"'RoBERTa: rounded by chance': '([\d.]+)'") - 0.15) < 0.002
    assert abs(done.number(r"'BERT: rounded': '([\d.]+)'") - 0.15) < 0.01
    assert 0.13 < done.number(r"'SpanBERT: spans': '([\d.]+)'") < 0.155
    for action, share in (("\\[MASK\\]", 0.8), ("another", 0.1), ("same", 0.1)):
        assert abs(done.number(rf"'{action}': '([\d.]+)'") - share) < 0.015
    assert "places that differ between 1 and 8 devices: 0 of " in done.printed
    assert done.number(r"'replaced': (\d+)") > 3 and done.number(r"'original': (\d+)") > 3
    assert "predictions that see themselves: 0 · tokens of the first half that see the second: 0" in done.printed
    assert "different orders: 4 of 4" in done.printed
    steps, units, rates, devices, samples, order, orders = range(7)
    assert len(done.pictures) == 7
    assert done.colours(steps, MASKED) > 0.02 and done.colours(units, MASKED) > 0.02 and done.colours(rates, MASKED) > 0.01
    assert done.colours(samples, RANDOM) > 0.005 and done.colours(samples, SAME) > 0.005 and done.colours(samples, MASKED) == 0
    assert all(done.colours(picture, "#0072B2") > 0.02 for picture in (devices, order, orders))
