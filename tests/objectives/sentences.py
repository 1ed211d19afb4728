"""A tiny ELMo, and synthetic rows of sentences for it: for the tests of its objective."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import rng
from jaxenc.data import characters
from jaxenc.data.batch import Batch
from jaxenc.data.sources import DataConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.bilm import Bilm, BilmConfig
from jaxenc.objectives.sampled import LogUniform
from jaxenc.training.run import Run
from tests import tiny

LENGTH = 8
DATA = DataConfig(rows="sentences", length=LENGTH)
MODEL = ElmoConfig(vocab_size=200, width=8, cells=12, character_width=4, filter_widths=(1, 2), filters=(4, 8), highways=1)
CONFIG = BilmConfig(negatives=50)


def objective(config: BilmConfig = CONFIG, model: ElmoConfig = MODEL) -> Bilm:
    return config.build(model, PhaseSetting(tiny.VOCABULARY, tiny.execution(), DATA))


def drawn(config: BilmConfig = CONFIG, model: ElmoConfig = MODEL) -> dict[str, Any]:
    return jax.tree.map(jnp.asarray, tiny.drawn(Run(objective=config, model=model, data=DATA)))


def batch_at(step: int, rows: int = tiny.ROWS, length: int = LENGTH, size: int = 200) -> Batch:
    """Step `step` of `rows` slots of random words, spelled as the digits of their ids.

    Every fifth row is padding from its third place on and every seventh is padding; slot s starts anew where (step + s) is a multiple
    of 3, and at step 0.
    """
    random, slots = np.random.default_rng([9, step]), np.arange(rows)
    real = np.arange(length) < np.where(slots % 7 == 6, 0, np.where(slots % 5 == 4, 2, length))[:, None]
    drawn = {f"{way}{name}": random.integers(0, size, (rows, length)) for way in ("", "reverse_") for name in ("tokens", "targets")}
    words = {name: np.where(real, ids, 0).astype(np.int32) for name, ids in drawn.items()}
    spell = lambda ids: characters.of_words([str(word) for word in ids.ravel()]).reshape(rows, length, -1) * real[..., None]
    return {
        **words,
        **{f"{way}characters": spell(words[f"{way}tokens"]).astype(np.uint16) for way in ("", "reverse_")},
        "segments": real.astype(np.int32),
        "index": (step * rows + slots).astype(np.uint32),
        "epoch": np.zeros(rows, np.uint32),
        "fresh": (((step + slots) % 3 == 0) | (step == 0)).astype(np.int32),
    }


@functools.cache
def _compiled(law: LogUniform | None, model: ElmoConfig, train: bool) -> Any:
    chosen = dataclasses.replace(objective(model=model), law=law)
    return jax.jit(lambda params, carry, example, keys: chosen.terms(params, carry, example, keys, train))


def terms(chosen: Bilm, params: Any, carry: Any, rows: Batch, step: int = 0, train: bool = False) -> tuple[Any, Any, Any]:
    """`Bilm.terms`, compiled, of rows that stand in slots 0, 1, ... of a training step."""
    return _compiled(chosen.law, chosen.readers.config, train)(params, carry, *inputs(chosen, rows, step))


def inputs(chosen: Bilm, rows: Batch, step: int = 0) -> tuple[dict[str, jax.Array], rng.Keys]:
    """(examples, keys) of rows that stand in slots 0, 1, ... of a training step."""
    example = {name: jnp.asarray(leaf) for name, leaf in tiny.reads(rows, chosen).items()}
    return example, rng.training(0, jnp.int32(step), len(rows["segments"]))
