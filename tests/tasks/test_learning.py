"""Each kind of task is learned from its own rows: what a model is trained on is what its answers are read from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxenc import rng
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.regress import Regress
from jaxenc.training.run import Run
from tests import tiny
from tests.selection import thinned
from tests.tasks.texts import framing, write_json

MODEL = dataclasses.replace(tiny.MODEL, layers=1, dropout=0.0, attention_dropout=0.0)
WORDS = ("quick", "brown", "fox", "jumps", "over", "lazy", "dog", "the")
TEXTS = [f"{first} {second}" for first in WORDS[:4] for second in WORDS[4:]]
SCORES = [round(5 * (number * 7 % 16) / 15, 3) for number in range(16)]
# {kind: (task, what its record has beside the text or the pair)}
TASKS = {
    "classify": (Classify(), lambda number: {"label": "abc"[number % 3]}),
    "multilabel": (Multilabel(), lambda number: {"label": [name for name, step in (("a", 2), ("b", 3)) if number % step == 0]}),
    "regress": (Regress(label="score", bounds=(0.0, 5.0)), lambda number: {"score": SCORES[number]}),
    "scaled": (Regress(label="score", bounds=(0.0, 5.0), scaled=True, metric="spearman"), lambda number: {"score": SCORES[number]}),
    "choice": (
        Choice(),
        lambda number: {"choices": list(np.roll(("quick", "dog", "lazy")[: 2 + number % 2], number)), "label": number % (2 + number % 2)},
    ),
}


@pytest.mark.parametrize("kind, batch", thinned([*((kind, 16) for kind in TASKS), ("regress", 1)], "choice", ("regress", 16)))
def test_sixteen_examples_are_learned(tmp_path, kind, batch):
    """B88: to a metric of 0.95 or more, which labels and predictions of different shapes, orders or scales do not reach."""
    task, of_number = TASKS[kind]
    files = write_json(tmp_path, *({"text": text, "prompt": text} | of_number(number) for number, text in enumerate(TEXTS)))
    examples = task.examples(files, "train")
    task = task.fitted(examples)
    features = task.features(examples, framing(12))
    objective = tiny.objective(task.objective(MODEL), MODEL, 12)
    params = jax.tree.map(jnp.asarray, tiny.drawn(Run(objective=task.objective(MODEL), model=MODEL)))
    given = {**features.rows, "index": np.arange(16, dtype=np.uint32), "epoch": np.zeros(16, np.uint32)}
    name = next(iter(objective.trained))
    optimizer = optax.adam(3e-3)

    def loss(params, rows):
        keys = rng.training(0, jnp.int32(0), batch)
        return objective.terms(params, {}, rows, keys, False)[0][name] / objective.weights(rows)[name]

    @jax.jit
    def learned(params, orders):
        def step(carry, chosen):
            params, moments = carry
            grads = jax.grad(loss)(params, {name: jnp.asarray(array)[chosen] for name, array in given.items()})
            updates, moments = optimizer.update(grads, moments)
            return (optax.apply_updates(params, updates), moments), None

        return jax.lax.scan(step, (params, optimizer.init(params)), orders)[0][0]

    steps = 150 if batch == 16 else 480
    orders = np.concatenate([np.random.default_rng(0).permutation(16) for _ in range(steps * batch // 16)]).reshape(steps, batch)
    params = learned(params, orders)
    keys = rng.evaluation(0, np.arange(16, dtype=np.uint32))
    predictions = jax.device_get(jax.jit(objective.predict)(params, given, keys))
    answers = task.answers(examples, features, predictions)
    assert task.score(answers, examples)[task.metric] >= 0.95
