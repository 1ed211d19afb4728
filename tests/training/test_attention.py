"""The record of which attention a run uses, and what a resume does with it."""

import dataclasses
import json
import math

import pytest

from jaxenc.checkpoint.restore import Start
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.training import attention, prepare
from jaxenc.training.attention import RECORD, choose, with_backend
from jaxenc.training.phases import Phases
from jaxenc.training.run import Run
from tests.training import test_loop

BERT = Run(model=BertConfig(attention_dropout=0.0), phases=Phases(steps=(90, 10), length=(128, 512)))
DROPPING = dataclasses.replace(BERT, model=BertConfig(attention_dropout=0.1))


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """A choice of both kernels by length, whatever is measured today."""
    lines = (("bfloat16", False, 128, "pallas"), ("bfloat16", False, math.inf, "cudnn"), ("bfloat16", True, math.inf, "pallas"))
    monkeypatch.setattr(attention.attend, "FASTEST", tuple(attention.attend.Choice(*line) for line in lines))


def recorded(workdir, run, platform="gpu"):
    """The choice of a first start, written as a run writes it."""
    chosen = choose(run, platform, workdir)
    (workdir / RECORD).write_bytes(chosen.to_json())
    return chosen


def test_every_phase_has_its_own(tmp_path):
    chosen = choose(BERT, "gpu", tmp_path)
    assert chosen.backends == {128: "pallas", 512: "cudnn"} and not chosen.recorded
    assert chosen.line == "attention pallas for rows of 128, cudnn for rows of 512"
    pallas, xla = "attention pallas (our fused kernel)", "attention xla (plain operations)"
    for model, line in ((XlnetConfig(), pallas), (XlnetConfig(attention_dropout=0.0), xla)):
        assert choose(dataclasses.replace(DROPPING, model=model), "gpu", tmp_path).line == line
    assert choose(DROPPING, "gpu", tmp_path).line == pallas and choose(BERT, "cpu", tmp_path).line == xla
    assert chosen.warnings(resumed=False) == []


def test_a_resume_stays_with_what_the_run_used(tmp_path, monkeypatch):
    """Also where a later version would choose otherwise; a new run takes the new choice."""
    recorded(tmp_path, BERT)
    monkeypatch.setattr(attention.attend, "FASTEST", ())
    again = choose(BERT, "gpu", tmp_path)
    assert again.backends == {128: "pallas", 512: "cudnn"} and again.warnings(resumed=True) == []
    assert set(choose(BERT, "gpu", tmp_path / "new").backends.values()) == {"xla"}


def test_a_change_is_reported(tmp_path):
    """On another platform, with a setting of one's own, and where the recorded one cannot run any more."""
    recorded(tmp_path, BERT)
    elsewhere = choose(BERT, "cpu", tmp_path)
    assert set(elsewhere.backends.values()) == {"xla"}
    assert elsewhere.warnings(resumed=True) == [
        "warning: attention xla from here on for rows of 128: until now it was pallas",
        "warning: attention xla from here on for rows of 512: until now it was cudnn",
    ]
    assert len(choose(with_backend(BERT, "xla"), "gpu", tmp_path).warnings(resumed=True)) == 2
    dropping = choose(DROPPING, "gpu", tmp_path)
    assert dropping.warnings(resumed=True) == ["warning: attention pallas from here on for rows of 512: until now it was cudnn"]


def test_a_run_of_an_earlier_version_has_no_record(tmp_path):
    """It chose as now, except that it had no pallas."""
    assert len(choose(DROPPING, "gpu", tmp_path).warnings(resumed=True)) == 1
    assert choose(DROPPING, "cpu", tmp_path).warnings(resumed=True) == []


DAMAGED = ("", "[]", "{}", *(f'{{"platform": "gpu", "rows": {rows}}}' for rows in ('{"128": "flash"}', '{"x": "xla"}', "[]", "1")))


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_record_is_one_line(tmp_path, content):
    (tmp_path / RECORD).write_text(content)
    with pytest.raises(UserError, match=f"{RECORD}: .*delete it, and the choice is made again"):
        choose(BERT, "gpu", tmp_path)


def test_a_run_writes_the_record_and_prints_its_choice(data, tmp_path):
    job = prepare.prepare(test_loop.recipe(data), tmp_path)
    prepare.write_facts(job, tmp_path)
    (length,) = job.attention.backends
    assert json.loads((tmp_path / RECORD).read_text()) == {"platform": "cpu", "rows": {str(length): "xla"}}
    assert job.files[RECORD] == (tmp_path / RECORD).read_bytes()  # every checkpoint holds it: an evaluation reads it there
    assert ", attention xla (plain operations), from scratch" in prepare.describe(job, Start("fresh", tmp_path, 0))
    assert prepare.prepare(test_loop.recipe(data), tmp_path).attention.recorded == {length: "xla"}
    assert "train.attention" in Run(model=ElmoConfig()).unused  # says nothing of it
