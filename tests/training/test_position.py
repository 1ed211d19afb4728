"""R35: a run that continues from another's state goes on with the next row, or is refused."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from jaxenc.cli import recipe as cli_config
from jaxenc.data import pipeline
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.training.position import position, refuse_other_rows
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from tests.training import test_loop
from tests.training.stepping import stepping

SAVED = Run(data=DataConfig(length=32), train=TrainConfig(steps=10, batch=16, seed=3))


def changed(run: Run, **parts: dict[str, Any]) -> Run:
    return dataclasses.replace(run, **{part: dataclasses.replace(getattr(run, part), **values) for part, values in parts.items()})


def refused(run: Run, step: int = 7, data: str = "a", saved: Run = SAVED) -> str:
    """What is said of `run` going on from step `step` of `saved`; '' where it may."""
    try:
        refuse_other_rows(saved, "a", run, data, step)
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "parts",
    [
        {"train": {"steps": 40}},
        {"train": {"steps": 40, "dupe_factor": 4, "microbatches": 2}},
        {"optim": {"lr": 1e-5, "warmup": 3}},
        {"mesh": {"preset": "fsdp"}, "eval": {"rows": 5, "batch": 3}, "checkpoint": {"every": 2}, "log": {"every": 1}},
        {"data": {"reuse": 8, "short_probability": 0.5}},  # fields that no row of text reads
        {"phases": {"steps": (20, 5), "batch": (16, 8)}},
        {"phases": {"steps": (7, 13), "batch": (16, 12)}},  # a phase that begins there
        {"phases": {"steps": (7, 13), "length": (32, 64)}, "train": {"seed": 9}, "data": {"rows": "pairs"}},
    ],
)
def test_r35_a_run_that_goes_on_with_the_next_row_is_accepted(parts: dict[str, dict[str, Any]]) -> None:
    assert refused(changed(SAVED, **parts)) == ""


def test_r35_another_batch_is_refused_with_the_rows() -> None:
    """The named case: step 7 of 16 rows, continued with 12."""
    said = refused(changed(SAVED, train={"batch": 12, "steps": 20}))
    assert "at step 7: the checkpoint has read 112 rows in batches of 16, and this run would go on at row 84 in batches of 12" in said


@pytest.mark.parametrize(
    "parts, data, words",
    [
        ({"data": {"length": 64}}, "a", "checkpoint data.length 32, this run's 64"),
        ({"data": {"rows": "pairs"}}, "a", "checkpoint data.rows text, this run's pairs"),
        ({"train": {"seed": 4}}, "a", "checkpoint train.seed 3, this run's 4"),
        ({}, "b", "checkpoint data.fingerprint a, this run's b"),
        ({"phases": {"steps": (5, 15)}}, "a", "has read 112 rows in batches of 16, and this run would go on at row 32 in batches of 16"),
        ({"data": {"rows": "doc_sentences"}}, "a", "checkpoint data.rows text, this run's doc_sentences"),
        ({"train": {"steps": 7}}, "a", "leaves nothing to train; set train.steps beyond 7"),
        ({"phases": {"steps": (3, 4)}}, "a", "leaves nothing to train; set phases.steps beyond 7"),
    ],
)
def test_r35_whatever_else_decides_the_rows_is_named(parts: dict[str, dict[str, Any]], data: str, words: str) -> None:
    assert words in refused(changed(SAVED, **parts), data=data)


@pytest.mark.parametrize("kind, field", [("pairs", {"short_probability": 0.5}), ("streams", {"reuse": 8})])
def test_r35_a_field_counts_where_its_rows_read_it(kind: str, field: dict[str, Any]) -> None:
    saved = changed(SAVED, data={"rows": kind, "reuse": 16})
    name, value = next(iter(field.items()))
    assert f"data.{name} {getattr(saved.data, name)}, this run's {value}" in refused(changed(saved, data=field), saved=saved)


def test_r35_streams_have_another_order_with_another_batch() -> None:
    """Each slot has its own part of the text, so 32 rows read are not the same 32; rows of text are."""
    first, second = {"steps": (3, 10), "batch": (4, 8)}, {"steps": (5, 10), "batch": (4, 16)}
    assert refused(changed(SAVED, phases=second), saved=changed(SAVED, phases=first)) == ""
    streams = changed(SAVED, data={"rows": "streams", "reuse": 8})
    said = refused(changed(streams, phases=second), saved=changed(streams, phases=first))
    assert "checkpoint train.batch 8, this run's 16" in said


def test_r35_rows_of_sentences_in_slots_have_another_order_with_another_batch() -> None:
    """ELMo's rows, as streams. Packed rows are numbered: a batch of another size that goes on with the next row is accepted."""
    first, second = {"steps": (3, 10), "batch": (4, 8)}, {"steps": (5, 10), "batch": (4, 16)}
    for kind, words in (("sentences", "checkpoint train.batch 8, this run's 16"), ("full_sentences", "")):
        run = changed(SAVED, data={"rows": kind})
        said = refused(changed(run, phases=second), saved=changed(run, phases=first))
        assert words in said and bool(said) == bool(words)
        assert "16" in refused(changed(run, train={"batch": 8}), saved=run)


def test_r35_at_a_border_the_phase_that_wrote_the_checkpoint_counts() -> None:
    """At a border the rows read are those of the phase before; a run that only lengthens that phase reads on."""
    saved = changed(SAVED, phases={"steps": (7, 3), "batch": (16, 12)})
    assert refused(changed(SAVED, train={"steps": 20}), saved=saved) == ""
    said = refused(changed(SAVED, train={"steps": 20}), 8, saved=saved)
    assert "has read 12 rows in batches of 12, and this run would go on at row 128" in said


@pytest.mark.slow
def test_r35_the_advice_works(data: Path, tmp_path: Path) -> None:
    """Refused before anything is written; the overrides that the message prints are a run that may go on, with its own batch."""
    run = changed(test_loop.recipe(data), train={"steps": 1})
    with stepping():
        assert pretrain(run, tmp_path / "first").step == 1
    other = changed(run, train={"batch": 16, "steps": 4})
    told = "has read 8 rows in batches of 8, and this run would go on at row 16 in batches of 16"
    with stepping(), pytest.raises(UserError, match=told) as error:
        pretrain(other, tmp_path / "next", continue_from=str(tmp_path / "first"))
    assert not (tmp_path / "next").exists()
    new, _, instead = str(error.value).partition(" in place of ")
    overrides = re.findall(r"--config\.phases\S+", new)
    assert overrides == ["--config.phases.steps=1,3", "--config.phases.batch=8,16", "--config.phases.one_schedule=true"]
    # The command line whose overrides asked for the other steps and rows, changed as the message says.
    given = ["--config.train.steps=4", "--config.train.batch=16", "--config.optim.warmup=1"]
    kept = [item for item in given if item.partition("=")[0] not in instead.split(" and ")]
    assert kept == given[2:]
    fixed = cli_config.resolve(str(test_loop.write_recipe(run, tmp_path / "recipe.json")), [*kept, *overrides])
    assert refused(fixed, 1, saved=run) == "" and [phase.batch for phase in fixed.plan] == [8, 16]
    assert {phase.schedule_steps for phase in fixed.plan} == {4}


def test_r35_the_next_row_is_the_one_that_the_pipeline_reads(data: Path) -> None:
    """At each step of two phases, over the end of an epoch."""
    run = changed(test_loop.recipe(data), phases={"steps": (3, 20), "batch": (8, 12)})
    for phase in run.plan:
        order = pipeline.open_batches(run.data, "train", phase.batch, run.train.seed, 0)
        one_by_one = pipeline.open_batches(run.data, "train", 1, run.train.seed, 0)
        for step in range(phase.start, phase.end):
            first = order.batch_at(step - phase.start, slice(0, 1))
            wanted = one_by_one.batch_at(position(run, "a", phase, step).read)
            assert (first["epoch"], first["index"]) == (wanted["epoch"], wanted["index"])
    assert first["epoch"] > 0
