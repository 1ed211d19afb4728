"""What `jaxenc convert --check` does without transformers: its rows, its verdict, and the line that says what is missing."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli.main import main
from jaxenc.convert import parity
from jaxenc.convert.parity import Difference
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.training.run import Run


def test_rows_are_fixed_and_padded_and_of_both_types() -> None:
    """Padding is the pad id and nothing else is, since RoBERTa's positions follow from it; XLNet's is on the left, where its rows end."""
    for config, pad, padding in (
        (BertConfig(vocab_size=131), 0, "right"),
        (BertConfig(vocab_size=131, first_position=2, types=1), 1, "right"),
        (BertConfig(vocab_size=9, positions=1), 0, "right"),
        (XlnetConfig(vocab_size=131), 5, "left"),
    ):
        run = Run(model=config)
        rows = parity.probe(run, pad, padding)
        assert all(np.array_equal(rows[name], again) for name, again in parity.probe(run, pad, padding).items())
        assert rows["tokens"].min() >= 0 and rows["tokens"].max() < config.vocab_size
        assert set(np.unique(rows["types"])) == set(range(min(config.types, 2, 1 + (config.positions != 1))))
        lengths = rows["segments"].sum(axis=1)
        assert lengths.min() == 1 and lengths.max() == min(33, config.positions or 33)
        assert rows["segments"][:, 0 if padding == "right" else -1].all()
        assert np.array_equal(rows["tokens"] != pad, rows["segments"] == 1)


@pytest.mark.parametrize(
    "ours, theirs, scale, within",
    [
        (1e-5, 0.0, 1.0, True),
        (2e-5, 0.0, 1.0, False),
        (9e-5, 0.0, 10.0, True),
        (2e-4, 0.0, 10.0, False),
        (3e-6, 5.8e-5, 1.0, True),
        (5.8e-5, 5.8e-5, 1.0, False),
        (float("nan"), 0.0, 1.0, False),
    ],
)
def test_the_verdict_is_on_ours(ours: float, theirs: float, scale: float, within: bool) -> None:
    """R23: float32 of transformers may be the less accurate side, and being as far from float64 excuses nothing."""
    one = Difference("hidden states", ours, theirs, scale)
    assert one.within is within
    said = parity.table([one])
    assert ("beyond the tolerance" in said) is not within
    assert f"{ours / scale:.1e}" in said and f"{theirs / scale:.1e}" in said


def test_a_missing_library_is_one_line_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["convert", "--from", f"hf:{tmp_path / 'nowhere'}", "--to", str(tmp_path / "out"), "--check"]) == 2
    error = capsys.readouterr().err
    assert "torch and transformers cannot be imported; pip install 'jaxenc[live]' " in error and error.count("\n") == 1
