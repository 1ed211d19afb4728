"""A resume may change how a run is computed, never what it computes."""

import pytest

from jaxenc.errors import UserError
from jaxenc.training.refusals import MAY_CHANGE, refuse, refused

SAVED = {
    "optim": {"lr": 1e-4, "betas": (0.9, 0.999)},
    "train": {"batch": 256, "steps": 1000, "microbatches": 1},
    "mesh": {"preset": "dp", "axes": {"data": 8}},
    "checkpoint": {"every": 1000},
    "eval": {"every": 0},
    "log": {"every": 10},
    "evaluate": 1,
}


def changed(**parts: dict) -> dict:
    return {key: {**value, **parts.get(key, {})} if isinstance(value, dict) else value for key, value in SAVED.items()}


def test_equal_configs_differ_in_nothing_and_lists_equal_tuples() -> None:
    assert refused(SAVED, changed(optim={"betas": [0.9, 0.999]})) == []
    refuse(SAVED, SAVED)


def test_what_may_change_on_a_resume() -> None:
    now = changed(mesh={"preset": "fsdp", "axes": {"data": 4}}, train={"microbatches": 4}, checkpoint={"every": 5})
    assert refused(SAVED, {**now, "eval": {"every": 5}, "log": {"every": 1}}) == []


def test_every_other_difference_is_named_with_both_values() -> None:
    now = {**changed(optim={"lr": 3e-4}, train={"batch": 512, "steps": 2000}, mesh={"preset": "fsdp"}), "evaluate": 2}
    now["data"] = {"length": 128}
    assert [path for path, _, _ in refused(SAVED, now)] == ["optim.lr", "train.batch", "train.steps", "evaluate", "data.length"]
    with pytest.raises(UserError) as caught:
        refuse(SAVED, now)
    message = str(caught.value)
    assert "checkpoint optim.lr 0.0001, this run's 0.0003; checkpoint train.batch 256, this run's 512" in message
    assert "checkpoint data.length (not set), this run's 128" in message
    assert "\n" not in message


def test_steps_may_change_when_the_caller_says_so() -> None:
    now = changed(train={"steps": 2000})
    assert refused(SAVED, now) == [("train.steps", 1000, 2000)]
    assert refused(SAVED, now, (*MAY_CHANGE, "train.steps")) == []


def test_the_words_for_a_vocabulary() -> None:
    with pytest.raises(UserError, match="^checkpoint vocabulary 30522, this run's 32000; "):
        refuse({"vocabulary": 30522, "tokenizer": "ab"}, {"vocabulary": 32000, "tokenizer": "ab"})
