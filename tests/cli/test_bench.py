"""`jaxenc bench` times a step, or attention alone, and says what it timed."""

import dataclasses
import itertools
import json
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.bench import attention, clock, peer, step
from jaxenc.bench.step import random_rows
from jaxenc.cli import bench
from jaxenc.cli.main import main
from jaxenc.data import characters, manifest
from jaxenc.data.batch import FIELDS
from jaxenc.data.vocabulary import Vocabulary, of_words
from jaxenc.errors import UserError
from jaxenc.sharding import chips
from jaxenc.training import perf
from jaxenc.training.run import Run
from tests import tiny

pytestmark = pytest.mark.usefixtures("one_device")

SMALL = ["--config.model.width=16", "--config.model.layers=1", "--config.model.heads=1", "--config.model.vocab_size=1100"]


def test_one_line_of_json_with_the_median_of_the_timed_groups(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock of ours: 7 s of compilation, then groups of two steps in 12, 2, 4, 20 and 2 s: the median is 2 s a step. Its CPU time runs
    three times as fast."""
    used = itertools.accumulate([0, *(second for lasts in (12, 2, 4, 20, 2) for second in (3 * lasts, 0.5))])
    ticks = itertools.accumulate([0, 7, *(second for lasts in (12, 2, 4, 20, 2) for second in (0.5, lasts))])
    ours = types.SimpleNamespace(monotonic=lambda: next(ticks), process_time=lambda: next(used))
    for module in (step, clock):
        monkeypatch.setattr(module, "time", ours)
    assert main(["bench", "step", "--config", "bert/tiny", "--steps", "10", "--config.train.batch=8", *SMALL]) == 0
    timed = json.loads(capsys.readouterr().out)
    assert (timed["rows"], timed["length"], timed["compile_s"], timed["step_ms"], timed["cpu_ms"]) == (8, 32, 7, 2000, 6000)
    assert timed["tokens_per_second"] == 8 * 32 / 2 and timed["planned_gb"] > 0


def test_fewer_than_one_step_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "step", "--config", "bert/tiny", "--steps", "0"]) == 2
    assert capsys.readouterr().err == "jaxenc: --steps 0: less than 1; use 1 or more\n"


def test_a_peer_without_its_libraries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(peer.importlib.util, "find_spec", lambda name: None)
    assert main(["bench", "step", "--config", "bert/tiny", "--peer", "hf"]) == 2
    assert "--peer hf: needs torch and transformers; pip install torch transformers" in capsys.readouterr().err


def test_the_peer_gets_the_run_and_its_own_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is timed first, without JAX on the accelerator; its failure is one line."""
    ran = []
    times = '"warm_up_s": 1, "step_ms": 2, "cpu_ms": 3, "tokens_per_second": 3'
    line = '{"peer": "p", "device": "d", "rows": 8, "length": 32, ' + times + ', "peak_gb": 4}'

    def process(command: list[str], **how: object) -> object:
        ran.append((json.loads(how["input"]), how["env"]["JAX_PLATFORMS"]))
        return types.SimpleNamespace(returncode=1 if ran[-1][0]["gathered"] else 0, stdout=f"chatter\n{line}\n")

    monkeypatch.setattr(peer.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(peer.subprocess, "run", process)
    dropout = "--config.model.dropout=0.1"
    arguments = ["bench", "step", "--config", "bert/tiny", "--steps", "1", "--config.train.batch=8", dropout, *SMALL]
    assert main([*arguments, "--peer", "hf"]) == 0
    theirs, ours = map(json.loads, capsys.readouterr().out.splitlines())
    assert (theirs["peer"], theirs["config"], ours["rows"]) == ("p", "bert/tiny", 8)
    asked, platform = ran[0]
    assert platform == "cpu" and asked["steps"] == 1 and not asked["gathered"]
    assert (asked["run"]["train"]["batch"], asked["run"]["model"]["width"], asked["run"]["model"]["dropout"]) == (8, 16, 0.1)
    assert main([*arguments, "--peer", "hf-gathered"]) == 2
    assert "--peer hf-gathered: its process ended with exit code 1" in capsys.readouterr().err


def test_the_vocabulary_is_that_of_the_named_data(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable) -> None:
    """A step costs what it costs in training, and a teacher with the data's tokenizer fits."""
    given: list[tuple[Run, Vocabulary]] = []
    monkeypatch.setattr(bench, "time_step", lambda *asked, by_kind: given.append(asked[:2]) or step.Timing("cpu", *[1] * 10, None))
    assert main(["bench", "step", "--config", "bert/tiny", f"--config.data.path={data}"]) == 0
    [(run, vocabulary)] = given
    assert run.model.vocab_size == vocabulary.size == manifest.read(data).tokenizer.size != 4096
    assert "nowhere" in fails("bench", "step", "--config", "bert/tiny", f"--config.data.path={tmp_path / 'nowhere'}")


def test_utilisation_is_of_rows_a_second_and_of_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 GFLOP a row, 8 rows in 4 s, on two devices of 1 TFLOP/s: 0.5 %."""
    mesh = tiny.mesh("dp", 2)
    monkeypatch.setitem(chips.CHIPS, mesh.devices.flat[0].device_kind, chips.Chip(1e12, 0, 0, 0, 0))
    timed = step._timing(mesh, 8, 32, 7.0, clock.Seconds(4.0, 9.0), 5e9, 0, None)
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


SHAPE = ["--rows", "2", "--length", "8", "--heads", "3", "--head-size", "4"]


def test_attention_prints_a_line_for_each_backend_that_runs_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a CPU, xla alone. With 2 ms forward, 6 ms for both passes and a product of 1 GFLOP/s: 4 · 2 · 3 · 8² · 4 FLOPs forward and three
    times as many in both passes, so 3.072 GFLOP/s in 6 ms."""
    seconds = itertools.cycle([0.002, 0.006])
    monkeypatch.setattr("jaxenc.cli.bench.time_product", lambda *_: 1e9)
    monkeypatch.setattr(attention, "seconds_a_call", lambda call, calls: (call(), clock.Seconds(next(seconds), 0.0))[1])
    assert main(["bench", "attention", *SHAPE, "--dropout", "0.1"]) == 0
    out, err = capsys.readouterr()
    (line,) = map(json.loads, out.splitlines())
    assert (line["rows"], line["length"], line["heads"], line["head_size"], line["dropout"]) == (2, 8, 3, 4, 0.1)
    assert (line["precision"], line["backend"], line["forward_ms"], line["forward_backward_ms"]) == ("bfloat16", "xla", 2, 6)
    assert line["product_share"] == pytest.approx(3 * 4 * 2 * 3 * 64 * 4 / 0.006 / 1e9, abs=1e-4)
    reasons = [text.partition(" on cpu")[0] for text in err.splitlines()]
    assert reasons == ["left out: attention is 'cudnn'", "left out: attention is 'pallas'"]


def test_a_shape_that_a_backend_refuses_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("no heads of 4")

    monkeypatch.setattr(attention.attend, "attend", refuse)
    with pytest.raises(UserError, match="attention xla does not run on this shape .no heads of 4"):
        attention.time_attention(attention.Work(2, 8, 3, 4, 0.0, "float32"), "xla", 1e9, 1)


def test_attention_is_timed_with_its_dropout_and_all_its_gradients() -> None:
    """The pass that is timed is attention's own: with dropout another result, and three gradients."""
    work = attention.Work(2, 8, 3, 4, 0.0, "float32")
    results = []
    for rate in (0.0, 0.5):
        forward, both = attention._passes(dataclasses.replace(work, dropout=rate), tiny.execution())
        q = np.random.default_rng(0).normal(size=(2, 8, 3, 4)).astype(np.float32)
        results.append(forward(q, q, q, np.full(2, 8)))
        assert [gradient.shape for gradient in both(q, q, q, np.full(2, 8), q)] == [q.shape] * 3
    assert not np.allclose(*results)


def test_the_rate_of_a_product_is_two_operations_an_element_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "PRODUCT_ON_CPU", 100)
    monkeypatch.setattr(attention, "seconds_a_call", lambda call, calls: clock.Seconds(float(call().shape[0]), 0.0))
    assert attention.time_product("bfloat16", 5) == pytest.approx(2 * 100**3 / 100)


@pytest.mark.parametrize(
    "given, message",
    [
        (["step"], "`jaxenc bench step` needs --config; add --config"),
        (["step", "--config", "bert/tiny", "--head-size", "4"], "--head-size: `jaxenc bench step` does not take it; leave it out"),
        (["attention", *SHAPE[:-2]], "`jaxenc bench attention` needs --rows --length --heads --head-size; add --head-size"),
        (["attention", *SHAPE, "--config", "bert/tiny"], "--config: `jaxenc bench attention` does not take it; leave it out"),
        (["attention", *SHAPE, "--peer", "hf"], "--peer: `jaxenc bench attention` does not take it; leave it out"),
        (["attention", *SHAPE, "--config.seed=1"], "--config.seed=1: `jaxenc bench attention` does not take it; leave it out"),
        (["attention", *SHAPE, "--rows", "0"], "rows is 0; it takes 1 or more"),
        (["attention", *SHAPE, "--dropout", "1"], "dropout is 1.0; it takes 0 or more and less than 1"),
    ],
)
def test_a_wrong_combination_is_one_line(given: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *given]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err == f"jaxenc: {message}\n"
