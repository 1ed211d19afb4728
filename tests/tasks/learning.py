"""Trains a tiny model on the rows of a task, for the tests of each kind of task."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxenc import rng
from jaxenc.tasks.task import Task
from jaxenc.training.run import Run
from tests import tiny
from tests.tasks.texts import framing, write_json

MODEL = dataclasses.replace(tiny.MODEL, layers=1, dropout=0.0, attention_dropout=0.0)
WORDS = ("quick", "brown", "fox", "jumps", "over", "lazy", "dog", "the")
TEXTS = [f"{first} {second}" for first in WORDS[:4] for second in WORDS[4:]]


def learned(task: Task, of_number: Callable[[int], dict[str, Any]], tmp_path: Path, batch: int = 16) -> float:
    """The metric on 16 training examples after training on them; below 0.95 if labels and predictions differ in shape, order or scale.

    of_number: from the number of an example to the fields of its record beside its text. batch: rows of a step.
    """
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
    return task.score(answers, examples)[task.metric]
