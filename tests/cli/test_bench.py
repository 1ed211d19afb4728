"""`jaxenc bench step` times a step and says what it timed."""

import json

import numpy as np
import pytest

from jaxenc.bench.step import random_rows
from jaxenc.cli.main import main
from jaxenc.data import characters
from jaxenc.data.batch import FIELDS
from jaxenc.data.vocabulary import published_elmo

SMALL = ["--config.model.width=16", "--config.model.layers=1", "--config.model.heads=1", "--config.model.vocab_size=1100"]


def test_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "step", "--config", "bert/tiny", "--steps", "2", "--config.train.batch=8", *SMALL]) == 0
    timed = json.loads(capsys.readouterr().out)
    assert (timed["rows"], timed["length"]) == (8, 32)
    assert timed["tokens_per_second"] == pytest.approx(8 * 32 / (timed["step_ms"] / 1e3), rel=1e-3)


def test_rows_that_are_read_both_ways_are_filled() -> None:
    names = {name for name in FIELDS if "token" in name or "target" in name or "character" in name}
    batch = random_rows({name: FIELDS[name] for name in names}, 3, 20, published_elmo(500))
    assert set(batch) == names and all(batch[name].dtype == FIELDS[name].dtype for name in names)
    ids = [batch[name] for name in sorted(names) if "characters" not in name]
    assert all(array.min() > 2 and array.max() < 500 for array in ids) and len({array.tobytes() for array in ids}) == 4
    for way in ("", "reverse_"):
        word = str(batch[f"{way}tokens"][1, 7])
        assert np.array_equal(batch[f"{way}characters"][1, 7], characters.of_words([word])[0])
