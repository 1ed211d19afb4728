"""The tour: every cell runs, its model beats counting, and its pictures show it. One device, as on a laptop."""

from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("tour.ipynb", tmp_path)
    assert "800 documents" in done.printed and "BertForMaskedLM opens" in done.printed
    assert "a [MASK] near the harbour" in done.printed and any(f"  {word} 0." in done.printed for word in ("fish", "boat", "net"))
    # The model knows more than counts of neighbours, and the senses of one word come apart above the embedding.
    assert done.number(r"held_out loss at the end: ([\d.]+)") < 0.8 * done.number(r"'left_right': '([\d.]+)'")
    assert done.number(r"closer, by layer: .*'(-?[\d.]+)'\]")
    guesses, curves, senses = range(len(done.pictures))
    assert done.colours(guesses, "#0072B2") > 0.02, "bars"
    assert done.colours(curves, "#0072B2") > 0.001 and done.colours(curves, "#D55E00") > 0.0003, "two curves"
    assert done.pictures[senses].shape[1] > 2 * done.pictures[senses].shape[0], "three panels"
