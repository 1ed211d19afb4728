"""A family and a head that stay outside of jaxenc: they are fine-tuned, evaluated, loaded and asked for answers."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import jaxenc
from jaxenc import families, heads, rng, tasks
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.heads.classifier import CLASSIFIER
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.tasks.classify import HEAD, Classify
from jaxenc.tasks.probe import ProbeSettings
from jaxenc.training.run import Run
from tests import tiny
from tests import tuned as tuning


@dataclasses.dataclass(frozen=True)
class OwnConfig(BertConfig):
    """A BERT under a name that jaxenc does not know."""

    kind: ClassVar[str] = "own"


@dataclasses.dataclass(frozen=True)
class Own(Classify):
    """Classes by the head `mine`."""

    kind: ClassVar[str] = "own"

    def objective(self, model: families.ModelConfig) -> HeadsConfig:
        return HeadsConfig((model.pools, "mine"), self.classes)

    def answers(self, examples: Sequence, features: Any, predictions: Mapping[str, np.ndarray]) -> list[Any]:
        return super().answers(examples, features, {HEAD: predictions["mine"]})

    def details(self, examples: Sequence, features: Any, predictions: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
        return super().details(examples, features, {HEAD: predictions["mine"]})


MODELS = families.with_built_in(OwnConfig)
HEADS = heads.with_built_in(dataclasses.replace(CLASSIFIER, name="mine", site=rng.FIRST_OWN_SITE))
TASKS = tasks.with_built_in(Own)


@pytest.fixture
def start(tmp_path: Path) -> str:
    """A random model of the family, saved."""
    tool = wordpiece.train([" ".join((*tuning.FIRST, *tuning.REST))] * 3, 90)
    model = OwnConfig(**{field.name: getattr(tuning.MODEL, field.name) for field in dataclasses.fields(tuning.MODEL)})
    run = Run(objective=MlmConfig(), model=model).with_vocabulary(tool.vocabulary)
    Model(run, tiny.drawn(run), tool).save(tmp_path / "start")
    return str(tmp_path / "start")


@pytest.mark.usefixtures("one_device")
def test_a_model_and_a_head_from_outside_are_fine_tuned(start: str, tuned: Path, tmp_path: Path) -> None:
    """The dev score of the run is that of `evaluate`, above the most frequent class, and the answers are those of the loaded model; without
    the family, the head or the task each says which it lacks."""
    runs = tmp_path / "runs"
    tune = dataclasses.replace(tuning.settings(tuned), task=Own(text=("sentence",)))
    found = jaxenc.finetune(tune, start, runs, heads=HEADS, models=MODELS)
    score = found.summary["accuracy"]["median"]
    assert score > 0.6
    assert jaxenc.evaluate(runs, heads=HEADS, models=MODELS, tasks=TASKS).numbers["accuracy"] == pytest.approx(score)
    model = jaxenc.load(runs, heads=HEADS, models=MODELS, tasks=TASKS)
    written = [json.loads(line) for line in (runs / "seed_0" / "dev.jsonl").read_text().splitlines()]
    texts = [line.split("\t")[0] for line in (tuned / "dev.tsv").read_text().splitlines()[1:]]
    assert model.predict(texts) == [row["answer"] for row in written]
    built_in = dataclasses.replace(tune, task=Classify(text=("sentence",)))
    with pytest.raises(UserError, match="'own'"):
        jaxenc.probe(runs, built_in, tmp_path / "probe")
    table = jaxenc.probe(runs, built_in, tmp_path / "probe", ProbeSettings(seeds=1, epochs=1), HEADS, MODELS, TASKS)
    assert len(table.rows) == 3
    for given, words in (({"heads": HEADS}, "'own'"), ({"models": MODELS}, "'mine'")):
        with pytest.raises(UserError, match=words):
            jaxenc.finetune(tune, start, tmp_path / "other", **given)
    assert not (tmp_path / "other").exists()
