"""The blocks of docs/hindi.md and docs/words.md that are marked so, in order: from text to a filled mask and to neighbours of a word.

The short suite trains two steps and looks that every command runs; the full one trains as the pages say and looks at what they show.
"""

import shlex
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli.main import main
from tests import tiny
from tests.docs import blocks
from tests.docs.blocks import ROOT

PAGES = ("hindi.md", "words.md")
MARK = "run by tests/docs/test_words.py"


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, pytest.param(200, marks=pytest.mark.full)])
def test_the_pages_run(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    with tiny.on_one_device():
        for page in PAGES:
            for block in blocks.blocks(ROOT / "docs" / page):
                if block.mark == MARK:
                    said |= _ran(block, steps, capsys)
    filled = next(out for command, out in said.items() if "fill-mask" in command).splitlines()
    near = next(out for command, out in said.items() if "--word 银行" in command)
    assert len(filled) == 4 and near.startswith("银行: 22 occurrences in 60 sentences")
    inspected = next(out for command, out in said.items() if "--inspect" in command)
    pages = "".join((ROOT / "docs" / page).read_text() for page in PAGES)
    assert all(f"    {line}\n" in pages for line in inspected.splitlines())
    with np.load("chinese.npz") as file:
        assert "spans" in file and len(file.files) == 62
    if steps == 200:
        # Probabilities in the hundredths differ from machine to machine.
        assert filled[1].split()[0] == "किताब" and filled[3].split()[0] == "पानी"
        assert near.count("[银行]") >= 6


def _ran(block: blocks.Block, steps: int, capsys: pytest.CaptureFixture) -> dict[str, str]:
    """{command: what it printed} of a block; {} of one in Python."""
    if block.language == "python":
        exec(compile(block.text, block.name, "exec"), {"__name__": "page"})
        return {}
    out = {}
    for command in blocks.commands(block.text):
        capsys.readouterr()
        argv = shlex.split(command.replace("train.steps=200", f"train.steps={steps}"))
        assert argv[0] == "jaxenc" and main(argv[1:]) == 0, command
        out[command] = capsys.readouterr().out
    return out
