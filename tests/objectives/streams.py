"""A tiny XLNet, and synthetic streams for it: for the tests of its objective."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import rng
from jaxenc.data.batch import Batch
from jaxenc.data.sources import DataConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.corrupt import permute
from jaxenc.objectives.corrupt.permute import Permutation
from jaxenc.objectives.plm import Plm, PlmConfig
from jaxenc.training.run import Run
from tests import tiny

LENGTH, REUSE = 32, 16
DATA = DataConfig(rows="streams", length=LENGTH, reuse=REUSE)
MODEL = XlnetConfig(vocab_size=200, width=16, layers=2, heads=2, feed_forward=32)
# A memory that is longer than the reused part and no multiple of it.
CONFIG = PlmConfig(predictions=9, permutation=8, memory=24)


def objective(config: PlmConfig = CONFIG, model: XlnetConfig = MODEL, data: DataConfig = DATA) -> Plm:
    return config.build(model, PhaseSetting(tiny.VOCABULARY, tiny.execution(), data))


def drawn(config: PlmConfig = CONFIG, model: XlnetConfig = MODEL) -> dict[str, Any]:
    return jax.tree.map(jnp.asarray, tiny.drawn(Run(objective=config, model=model, data=DATA)))


def batch_at(step: int, rows: int = tiny.ROWS, length: int = LENGTH, reuse: int = REUSE) -> Batch:
    """Step `step` of `rows` streams of random tokens that overlap by all but `reuse`: reused part, A, SEP, B, SEP, CLS.

    Odd rows run backward; slot s starts anew where (step + s) is a multiple of 3, and at step 0.
    """
    v, slots = tiny.VOCABULARY, np.arange(rows)
    text = np.stack([np.random.default_rng([9, slot]).integers(5, v.size, reuse * step + length) for slot in slots])[:, reuse * step :]
    tokens, middle = text.astype(np.int32), reuse + 1 + slots % (length - reuse - 4)
    tokens[slots, middle], tokens[:, -2], tokens[:, -1] = v.sep, v.sep, v.cls
    places = np.arange(length)
    special = (places == middle[:, None]) | (places >= length - 2)
    return {
        "tokens": tokens,
        "types": ((places > middle[:, None]).astype(np.int32) + (places == length - 1)).astype(np.int32),
        "segments": np.ones_like(tokens),
        "positions": np.broadcast_to(places.astype(np.int32), tokens.shape),
        "word_starts": (special | (text % 5 < 3)).astype(np.int32),
        "index": (step * rows + slots).astype(np.uint32),
        "epoch": np.zeros(rows, np.uint32),
        "direction": np.where(slots % 2, -1, 1).astype(np.int32),
        "fresh": (((step + slots) % 3 == 0) | (step == 0)).astype(np.int32),
    }


@functools.cache
def _permuting(permutation: Permutation) -> Any:
    one = lambda key, row: permute.apply(permutation, permute.draws(permutation, key, row["tokens"].shape[0]), row)
    return jax.jit(jax.vmap(one))


def corrupted(chosen: Plm, rows: Batch, step: int = 0, seed: int = 0) -> tuple[Batch, rng.Keys]:
    """(examples, keys) of rows that stand in slots 0, 1, ... of a training step."""
    keys, read = rng.training(seed, jnp.int32(step), len(rows["tokens"])), tiny.reads(rows, chosen)
    permuted = _permuting(chosen.permutation)(keys.per_row("corrupt", "mask"), read)
    return {name: np.array(leaf) for name, leaf in {**read, **permuted}.items()}, keys


def log_likelihoods(chosen: Plm, params: Any, carry: Any, example: Mapping[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(log p of each predicted token [batch, predictions], its logits, the content stream's last layer), without dropout."""
    streams = chosen.read(params, chosen.remembered(carry, example["fresh"]), example, None)
    logits = chosen.head.module.apply({"params": params["lm"]}, streams.query, params["embeddings"]["token"]["table"])
    labels = jnp.take_along_axis(example["tokens"], example["predicted_at"], axis=1)
    return jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0], logits, streams.content
