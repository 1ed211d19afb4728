"""The notebook of contextual neighbours: the senses of a word separate, by the margin that the notebook asks for."""

import re
from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("neighbours.ipynb", tmp_path)
    assert "The senses separate: in layer" in done.printed
    assert done.number(r"The senses separate: in layer \d by ([\d.]+)") >= done.number(r"asked for: ([\d.]+)")
    # Without context they do not: the margins of layer 0, and the nearest other occurrence.
    (embedding,) = re.findall(r"^0 ((?: +-?[\d.]+)+)", done.printed, re.MULTILINE)
    assert all(abs(float(value)) < 0.1 for value in embedding.split())
    right = [done.number(rf"layer {layer}: the nearest occurrence of the word has its sense in (\d+)%") for layer in range(4)]
    assert right[0] < 75 and max(right) > 90
    assert "bank: 12 occurrences in 36 sentences" in done.printed
    curves, blocks, maps = range(len(done.pictures))
    assert all(done.colours(curves, colour) > 0.001 for colour in ("#0072B2", "#E69F00", "#009E73"))
    assert done.pictures[blocks].shape[0] > 500 and done.colours(maps, "#0072B2") > 0.001
