"""`jaxenc bench step` times a step and says what it timed."""

import itertools
import json
import types

import numpy as np
import pytest

from jaxenc.bench import step
from jaxenc.bench.step import random_rows
from jaxenc.cli.main import main
from jaxenc.data import characters
from jaxenc.data.batch import FIELDS
from jaxenc.data.vocabulary import of_words
from jaxenc.training import perf
from tests import tiny

pytestmark = pytest.mark.usefixtures("one_device")

SMALL = ["--config.model.width=16", "--config.model.layers=1", "--config.model.heads=1", "--config.model.vocab_size=1100"]


def test_one_line_of_json_with_the_median_of_the_timed_steps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock of ours: 7 s of compilation, three steps of 100 s to warm up, then 6, 1 and 2 s."""
    ticks = itertools.accumulate([0, 7, *(second for lasts in (100, 100, 100, 6, 1, 2) for second in (0.5, lasts))])
    monkeypatch.setattr(step, "time", types.SimpleNamespace(monotonic=lambda: next(ticks)))
    assert main(["bench", "step", "--config", "bert/tiny", "--steps", "3", "--config.train.batch=8", *SMALL]) == 0
    timed = json.loads(capsys.readouterr().out)
    assert (timed["rows"], timed["length"], timed["compile_s"], timed["step_ms"]) == (8, 32, 7, 2000)
    assert timed["tokens_per_second"] == 8 * 32 / 2


def test_utilisation_is_of_rows_a_second_and_of_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 GFLOP a row, 8 rows in 4 s, on two devices of 1 TFLOP/s: 0.5 %."""
    mesh = tiny.mesh("dp", 2)
    monkeypatch.setitem(perf.PEAKS, mesh.devices.flat[0].device_kind, 1e12)
    timed = step._timing(mesh, 8, 32, 7.0, 4.0, 5e9)
    assert timed.mfu == pytest.approx(0.005) and (timed.devices, timed.rows, timed.length) == (2, 8, 32)
    assert perf.utilisation(2e12, 989.0, "NVIDIA H200", 4) == pytest.approx(0.5) and perf.utilisation(1.0, 1.0, "abacus", 1) == 0


def test_rows_that_are_read_both_ways_are_filled() -> None:
    names = {name for name in FIELDS if "token" in name or "target" in name or "character" in name}
    batch = random_rows({name: FIELDS[name] for name in names}, 3, 20, of_words(500))
    assert set(batch) == names and all(batch[name].dtype == FIELDS[name].dtype for name in names)
    ids = [batch[name] for name in sorted(names) if "characters" not in name]
    assert all(array.min() > 2 and array.max() < 500 for array in ids) and len({array.tobytes() for array in ids}) == 4
    assert random_rows({"direction": FIELDS["direction"]}, 3, 20, of_words(500))["direction"].tolist() == [1, -1, 1]
    for way in ("", "reverse_"):
        word = str(batch[f"{way}tokens"][1, 7])
        assert np.array_equal(batch[f"{way}characters"][1, 7], characters.of_words([word])[0])
