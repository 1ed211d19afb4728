"""`jaxenc bench finetune --peer hf` runs the same fine-tuning on both sides: parameters, batches, updates and losses."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import torch

from jaxenc import tree
from jaxenc.bench import handover, peer_tune, tune
from jaxenc.data import tokenizers
from jaxenc.families.foreign import Export
from jaxenc.formats.key_map import Entry
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim import optimizer
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.prepare import open_task
from jaxenc.tasks.regress import Regress
from jaxenc.tasks.task import Task
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training.run import Run
from tests import tiny

WORDPIECE = tokenizers.load(Path(__file__).parents[1] / "golden" / "tokenizers" / "wordpiece")
TASKS = {
    "classifier": Classify(("a", "b"), label="class"),
    "regressor": Regress(("a",), label="score"),
}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random BERT as a run directory."""
    folder = tmp_path_factory.mktemp("start") / "model"
    model = dataclasses.replace(tiny.MODEL, vocab_size=WORDPIECE.vocabulary.size)
    run = dataclasses.replace(Run(HeadsConfig(("pooler",)), model), data=dataclasses.replace(Run().data, length=64))
    Model(run, jax.tree.map(jax.numpy.asarray, tiny.drawn(run)), WORDPIECE).save(folder)
    return str(folder)


def tuning_of(task: Task, start: str, folder: Path, **train: Any) -> FineTune:
    """Texts of a few words, and some of up to 40, so that batches have rows of 32 and of 48 tokens."""
    random, words = np.random.default_rng(0), ["the", "film", "was", "good", "bad", "long", "story"]
    text = lambda longest: " ".join(random.choice(words, random.integers(1, longest + 1)))
    lines = [f"{text(3 if i % 6 else 40)}\t{text(3)}\t{random.choice(['x', 'y'])}\t{random.random():.3f}" for i in range(26)]
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("a\tb\tclass\tscore\n" + "\n".join(lines) + "\n")
    numbers = {"steps": 10, "batch": 4, "length": 48, "seed": 3, **train}
    data = FilesConfig(str(folder), "train.tsv", "dev.tsv")
    return FineTune(task=task, data=data, train=TuneConfig(**numbers), optim=OptimConfig(lr=1e-3, warmup=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", pytest.param("regressor", marks=pytest.mark.full)])
def test_ten_losses_and_the_score_are_those_of_transformers(name: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32 without dropout: losses to 1e-5, the answers to the dev set the same. The peer's process is a call here."""
    monkeypatch.setattr(tune, "answer", lambda module, asked, peer: peer_tune.tuned(asked))
    settings = tune.settings(tuning_of(TASKS[name], start, tmp_path, length=32), losses=10)
    with tiny.on_one_device():
        found = tune.compare(settings, start, 1, "hf")
    assert found.of_losses < 1e-5
    assert len(found.ours.losses[0]) == len(found.theirs.losses[0]) == 10 and np.ptp(found.ours.losses[0]) > 0.01
    assert found.difference == pytest.approx(0, abs=1e-5) and 0 < found.ours.mean <= 1


@pytest.mark.full
def test_the_peer_gets_the_batches_and_the_parameters_of_the_run(start: str, tmp_path: Path) -> None:
    """Row by row in the order of the run, padded as there; parameters bit for bit, each seed with a head of its own."""
    with tiny.on_one_device():
        tuning = open_task(tuning_of(TASKS["classifier"], start, tmp_path), start)
        asked = handover.write(tuning, range(3, 5), tmp_path)
        job, phase = tuning.job(4, tmp_path), tuning.run.plan[0]
        own = [job.batches("train", phase, 4).batch_at(step) for step in range(10)]
        params = [handover.first_params(tuning, seed) for seed in (3, 4)]
    models = [peer_tune.opened(one["model"], "cpu") for one in asked["seeds"]]
    given = peer_tune.batches(asked["seeds"][1]["train.npz"], models[1], "label", "cpu")
    assert {batch["tokens"].shape[1] for batch in own} == {32, 48} and len(given) == 10
    for mine, theirs in zip(own, given, strict=True):
        assert np.array_equal(theirs["input_ids"], mine["tokens"]) and np.array_equal(theirs["token_type_ids"], mine["types"])
        assert np.array_equal(theirs["attention_mask"], mine["segments"] > 0) and np.array_equal(theirs["labels"], mine["label"])
    dev = peer_tune.batches(asked["dev"], models[0], "", "cpu")
    rows = tuning.splits["dev"].features.rows["tokens"]
    assert np.array_equal(torch.cat([one["input_ids"] for one in dev])[: len(rows)], rows[:, : dev[0]["input_ids"].shape[1]])
    for mine, model in zip(params, models, strict=True):
        kernel = np.asarray(mine["classifier"]["dense"]["kernel"])
        assert np.array_equal(model.classifier.weight.detach().numpy().T, kernel)
        table = np.asarray(mine["embeddings"]["token"]["table"])[: WORDPIECE.vocabulary.size]
        assert np.array_equal(model.bert.embeddings.word_embeddings.weight.detach().numpy(), table)
    assert not torch.equal(models[0].classifier.weight, models[1].classifier.weight)
    names = {name for group in asked["groups"] for name in group["names"]}
    assert names == {name for name, _ in models[0].named_parameters()}
    kept = {name for group in asked["groups"] if not group["decays"] for name in group["names"]}
    assert kept == {name for name in names if name.endswith("bias") or "LayerNorm" in name}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"bias_correction": False, "clip": 0.0},
        {"epsilon_added": "before_correction", "beta2": 0.98},
        {"rates": ("b/.*=0.25",), "freeze": ("c/.*",)},
    ],
)
def test_five_updates_are_those_of_our_optimizer(changed: dict[str, Any]) -> None:
    """To 1e-6 of a tree whose parameters are about 1, with an epsilon that matters and a rate that is large."""
    optim = OptimConfig(lr=0.1, warmup=2, epsilon=1e-2, weight_decay=0.5, decay_exclude=(".*/bias",), **changed)
    random, shapes = np.random.default_rng(0), {"a": {"kernel": (3, 4)}, "b": {"kernel": (4,), "bias": (5,)}, "c": {"kernel": (2,)}}
    normal = lambda: jax.tree.map(
        lambda shape: random.normal(size=shape).astype(np.float32), shapes, is_leaf=lambda leaf: isinstance(leaf, tuple)
    )
    params, grads = normal(), [normal() for _ in range(5)]
    model = torch.nn.ParameterDict({path.replace("/", "_"): torch.tensor(leaf) for path, leaf in tree.leaves(params)})
    entries = tuple(Entry(path.replace("/", "_"), path) for path, _ in tree.leaves(params))
    run = dataclasses.replace(Run(), optim=optim, train=dataclasses.replace(Run().train, steps=5))
    theirs = peer_tune.AdamW(model, handover.groups(optim, params, Export({}, entries, params, {})), handover.adamw(run))

    frozen = lambda path: path.startswith("c/") and bool(optim.freeze)
    _, ours = tree.split(params, frozen)
    mine = optimizer.build(optim, params, optim.lr, optim.warmup, 5)
    moments = mine.init(ours)
    for step, grad in enumerate(grads):
        own = tree.split(grad, frozen)[1]
        norm = np.sqrt(sum(np.sum(np.square(leaf)) for _, leaf in tree.leaves(own)))
        ours, moments, _ = mine.update(own, jax.numpy.float32(norm), moments, ours, jax.numpy.int32(step))
        for path, leaf in tree.leaves(grad):
            if model[path.replace("/", "_")].requires_grad:
                model[path.replace("/", "_")].grad = torch.tensor(leaf)
        theirs.step(step)
    for path, leaf in tree.leaves(tree.merge(ours, tree.split(params, frozen)[0])):
        np.testing.assert_allclose(model[path.replace("/", "_")].detach(), leaf, atol=1e-6, rtol=0, err_msg=path)
    assert max(np.abs(leaf - dict(tree.leaves(params))[path]).max() for path, leaf in tree.leaves(ours)) > 0.1
