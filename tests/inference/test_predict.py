"""Answers of a fine-tuned model in Python: those of fine-tuning, whatever the batch and the order; and saving such a model."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import jaxenc
from jaxenc.errors import UserError
from jaxenc.inference import predict
from jaxenc.inference.load import Model
from tests import tiny, tuned


@pytest.fixture(scope="module")
def model(tuned: Path) -> Model:
    return jaxenc.load(tuned / "runs")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [text for text, _ in tuned.examples(tuned.DEV, 2)]


def answered(run: Path) -> list[str]:
    return [json.loads(line)["answer"] for line in (run / "dev.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("batch", [1, 7, 16, 64, 103])
def test_b92_answers_are_those_of_fine_tuning_whatever_the_batch(batch: int, tuned: Path, texts: list[str]) -> None:
    model = jaxenc.load(tuned / "runs" / "seed_1")
    assert model.predict(texts, batch=batch) == answered(tuned / "runs" / "seed_1")
