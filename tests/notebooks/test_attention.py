"""The notebook of attention heads: its model has heads that look at a neighbour, and layers that know the direction."""

from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("attention.ipynb", tmp_path)
    assert "3 layers of 4 heads; 100 texts" in done.printed
    neighbours = [done.number(rf"{name} token +clearest: layer \d, head \d: ([\d.]+)") for name in ("previous", "next")]
    assert max(neighbours) >= 0.4 and min(neighbours) >= 0.3, "with equal weights it would be 0.1"
    assert done.printed.count("asked for") == 5 and ": visible" in done.printed
    # The word alone says which list it is from, and nothing about the direction; a layer says both.
    assert done.number(r"which list: 0 ([\d.]+)") > 0.95
    direction, best = done.number(r"up or down: 0 ([\d.]+)"), max(done.number(rf"up or down: .* {layer} ([\d.]+)") for layer in (1, 2, 3))
    assert direction < 0.75 and best > direction + 0.15
    heads, maps, probes = range(len(done.pictures))
    assert done.colours(heads, "#D55E00") > 0.001, "five frames"
    assert done.colours(maps, "#FFFFFF") > 0.1 and done.colours(probes, "#0072B2") > 0.001
