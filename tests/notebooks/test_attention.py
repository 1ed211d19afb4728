"""The notebook of attention heads: its model has heads that look at a neighbour, and layers that know the direction."""

from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("attention.ipynb", tmp_path)
    assert "3 layers of 4 heads; 100 texts" in done.printed
    for name in ("previous", "next"):
        share = done.number(rf"{name} token +clearest: layer \d, head \d: ([\d.]+) \(threshold 0.5\): visible")
        assert share >= 0.5, "with equal weights it would be 0.1"
    assert done.printed.count("threshold") == 5
    # The word alone says which list it is from, and not whether it is the first or the last of its sentence; a layer says both.
    assert done.number(r"which list: 0 ([\d.]+)") > 0.95
    words, embedding = done.number(r"first or last: .* by the word alone ([\d.]+)"), done.number(r"first or last: 0 ([\d.]+)")
    best = max(done.number(rf"first or last: .* {layer} ([\d.]+)") for layer in (1, 2, 3))
    assert words < embedding + 0.05 and best > 0.9 > embedding + 0.05
    heads, maps, probes = range(len(done.pictures))
    assert done.colours(heads, "#D55E00") > 0.001, "five frames"
    assert done.colours(maps, "#FFFFFF") > 0.1 and done.colours(probes, "#0072B2") > 0.001
