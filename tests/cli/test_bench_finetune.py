"""`jaxenc bench finetune`: what it refuses, its comparison of two sides and its table."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from jaxenc.bench import handover, tune
from jaxenc.bench.tune import Comparison, Side
from jaxenc.cli import bench
from jaxenc.cli.main import main
from jaxenc.data.batch import FIELDS
from jaxenc.errors import UserError
from jaxenc.inference.load import load
from jaxenc.tasks import rows
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.prepare import open_task
from jaxenc.tasks.task import Features
from jaxenc.tasks.tuning import FineTune, TuneConfig
from tests import tiny
from tests.selection import thinned
from tests.tuned import again


def side(name: str, scores: Sequence[float], losses: Sequence[float] = (1.0,)) -> Side:
    each = [0.0] * len(scores)
    return Side(
        name, "cpu", "accuracy", scores, [2.0 + one for one in each], [100.0 + one for one in each], [np.array(losses)] * len(scores)
    )


def test_the_bound_is_three_standard_errors_of_the_difference() -> None:
    """Standard deviations 0.02 and 0.04 of three seeds: 3 · sqrt((0.0004 + 0.0016) / 2) · sqrt(2 / 3)."""
    found = Comparison(side("jaxenc", [0.80, 0.82, 0.84]), side("hf", [0.86, 0.90, 0.94]))
    assert found.bound == pytest.approx(3 * 0.001**0.5 * (2 / 3) ** 0.5)
    assert found.difference == pytest.approx(-0.08)
    header, row = tune.table("tasks/text", found)
    assert header.split()[:2] == ["task", "metric"] and "NO" in row and "0.8200 ± 0.0200" in row and row.endswith("1.00")
    assert "yes" in tune.table("tasks/text", Comparison(side("jaxenc", [0.8, 0.9]), side("hf", [0.8, 0.9])))[1]
    assert np.isnan(Comparison(side("jaxenc", [0.8]), side("hf", [0.9])).bound)


def test_examples_a_second_are_those_of_the_second_half() -> None:
    """Rows of steps 1, 50, 100, 150 and 160: 60 steps of 8 rows in 3 s, whatever the first half took."""
    rows = [{"step": step, "seconds": at} for step, at in ((1, 90.0), (50, 91.0), (100, 100.0), (150, 102.0), (160, 103.0))]
    assert tune.rate(rows, 8) == pytest.approx(8 * 60 / 3)
    assert tune.rate([{"step": 1, "seconds": 1.0}, {"step": 11, "seconds": 3.0}], 8) == pytest.approx(40)


def test_losses_are_compared_in_float32_without_dropout_and_each_is_reported() -> None:
    changed = tune.settings(FineTune(train=TuneConfig(epochs=2.0, precision="bfloat16")), losses=7)
    assert (changed.train.steps, changed.train.dropout, changed.train.precision, changed.log.every) == (7, False, "float32", 1)
    kept = tune.settings(FineTune(), losses=0)
    assert (kept.train, kept.log) == (FineTune().train, FineTune().log) and kept.checkpoint.every > 10**6
    with pytest.raises(UserError, match=r"train.select is best; set train.select=last"):
        tune.settings(FineTune(train=TuneConfig(select="best")), losses=0)


def test_batches_are_stacked_by_length_in_order() -> None:
    """Shuffled rows of 2 to 14 tokens in batches of 2, padded to 4, 8 or 16: taken from the stacks one by one, they are the run's."""
    lengths = np.random.default_rng(0).choice([2, 3, 4, 7, 14], 11)
    segments = (np.arange(16) < lengths[:, None]).astype(np.int32)
    held = {"segments": segments, "tokens": segments * np.arange(1, 12, dtype=np.int32)[:, None], "label": np.arange(11, dtype=np.int32)}
    shapes = {name: FIELDS[name] for name in ("segments", "tokens", "index", "epoch")} | {"label": FIELDS["is_random"]}
    source = rows.batches(Features(held, np.arange(11, dtype=np.int32)), 2, 5, False, (4, 8, 16), shapes, False)
    stacks = handover.stacked(source, 9, ("tokens", "segments", "label"))
    taken = {length: iter(range(99)) for length in (4, 8, 16)}
    for step, length in enumerate(stacks["lengths"]):
        place, batch = next(taken[length]), source.batch_at(step)
        for name in ("tokens", "segments", "label"):
            assert np.array_equal(stacks[f"{name}.{length}"][place], batch[name])
    assert len(set(stacks["lengths"])) > 1 and len(stacks["lengths"]) == 9


def test_losses_too_far_apart_end_with_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench.cli_finetune, "resolve", lambda *given: FineTune())
    given = ["bench", "finetune", "--config", "tasks/text", "--init-from", "m", "--peer", "hf", "--losses", "2"]
    for off, code in ((0.0009, 0), (0.0011, 1)):
        found = Comparison(side("jaxenc", [0.8], [0.7, 0.6]), side("hf", [0.8], [0.7, 0.6 + off]))
        monkeypatch.setattr(bench.tunes, "compare", lambda *asked, found=found: found)
        assert main(given) == code
        theirs, ours, line = capsys.readouterr().out.splitlines()
        assert (json.loads(theirs)["side"], json.loads(ours)["side"]) == ("hf", "jaxenc")
        assert line == f"2 losses in float32 without dropout: largest difference {off:.2e}, bound 0.001"


@pytest.mark.parametrize(
    "given, message",
    [
        ([], "`jaxenc bench finetune` needs --config --init-from; add --config and --init-from"),
        (["--config", "tasks/text"], "`jaxenc bench finetune` needs --config --init-from; add --init-from"),
        (["--config", "tasks/text", "--init-from", "m", "--steps", "3"], "--steps: `jaxenc bench finetune` does not take it; leave it out"),
        (["--config", "tasks/text", "--init-from", "m", "--kinds"], "--kinds: `jaxenc bench finetune` does not take it; leave it out"),
        (["--config", "tasks/text", "--init-from", "m", "--seeds", "0"], "--seeds 0: less than 1; use 1 or more"),
        (["--config", "tasks/text", "--init-from", "m", "--losses", "5"], "--losses 5: without a peer to compare with; add --peer hf"),
        (["--config", "tasks/text", "--init-from", "m", "--peer", "hf-gathered"], "`jaxenc bench finetune` has the peer hf; use --peer hf"),
    ],
)
def test_what_does_not_fit_is_one_line(given: list[str], message: str, fails: Callable) -> None:
    assert message in fails("bench", "finetune", *given)


@pytest.mark.parametrize("renamed", thinned([True, False], True))
def test_the_peer_starts_from_the_saved_head_only_for_the_same_classes(renamed: bool, tuned: Path, tmp_path: Path) -> None:
    """A run with other classes initialises the head (`begin.renamed_heads`), so the parameters for the peer do too."""
    rows = (tuned / "train.tsv").read_text()
    (tmp_path / "train.tsv").write_text(rows.replace("\tyes", "\tcertainly") if renamed else rows)
    settings = dataclasses.replace(again(load(tuned / "runs").tune), data=FilesConfig(str(tmp_path), "train.tsv"))
    settings = dataclasses.replace(settings, task=dataclasses.replace(settings.task, labels=()))
    with tiny.on_one_device():
        tuning = open_task(settings, str(tuned / "runs" / "seed_0"))
        given = handover.first_params(tuning, 0)["classifier"]["dense"]["kernel"]
    saved = load(tuned / "runs" / "seed_0").params["classifier"]["dense"]["kernel"]
    assert np.array_equal(given, saved) != renamed
