"""The notebook of contextual neighbours: the senses of a word separate, by the margin that the notebook asks for."""

import re
from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("neighbours.ipynb", tmp_path)
    assert done.number(r"The senses of all words separate: in layer \d by ([\d.]+)") >= done.number(r"threshold: ([\d.]+)") == 0.25
    # Without context they hardly do: the margins of layer 0, and the nearest other occurrence.
    margins = [[float(value) for value in row.split()] for row in re.findall(r"^[012] +((?: *-?\d\.\d\d){3})", done.printed, re.MULTILINE)]
    assert len(margins) == 3 and sum(margins[0]) < 0.5 * sum(max(margins, key=sum))
    right = [done.number(rf"layer {layer}: the nearest other occurrence is in the same sense in (\d+)%") for layer in range(3)]
    assert max(right) >= right[0] + 20
    assert "bank: 12 occurrences in 36 sentences" in done.printed
    curves, blocks, maps = range(len(done.pictures))
    assert all(done.colours(curves, colour) > 0.001 for colour in ("#0072B2", "#E69F00", "#009E73"))
    assert done.pictures[blocks].shape[0] > 500 and done.colours(maps, "#0072B2") > 0.001
