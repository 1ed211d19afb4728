"""`jaxenc bench step` times a step and says what it timed."""

import json

import pytest

from jaxenc.cli.main import main

SMALL = ["--config.model.width=16", "--config.model.layers=1", "--config.model.heads=1", "--config.model.vocab_size=1100"]


def test_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "step", "--config", "bert/tiny", "--steps", "2", "--config.train.batch=8", *SMALL]) == 0
    timed = json.loads(capsys.readouterr().out)
    assert (timed["rows"], timed["length"]) == (8, 32)
    assert timed["tokens_per_second"] == pytest.approx(8 * 32 / (timed["step_ms"] / 1e3), rel=1e-3)
