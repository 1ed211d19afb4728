"""Rows that hold several texts, the choices of a question, as the texts that an encoder reads, and back.

The fields of a text are [batch, choices, length]; choice c of row r is text r · choices + c. With choices 0 a row is one text, [batch,
length], and everything stays as it is.
"""

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from jaxenc.data.batch import FIELDS, Field
from jaxenc.layers.visible import HIDDEN
from jaxenc.rng import Keys

# The fields that the encoder reads, one text each.
TEXT = ("tokens", "types", "positions", "segments")


def fields(choices: int) -> dict[str, Field]:
    """The fields of a text, with an axis of choices where there are any."""
    of_choices = lambda field: dataclasses.replace(field, shape=(choices, *field.shape))
    return {name: of_choices(FIELDS[name]) for name in TEXT} if choices else {name: FIELDS[name] for name in TEXT}


def texts(example: Mapping[str, Array], choices: int) -> Mapping[str, Array]:
    """The fields of all texts, [texts, length], row by row."""
    return {name: example[name].reshape(-1, example[name].shape[-1]) for name in TEXT} if choices else example


def text_keys(keys: Keys, choices: int) -> Keys:
    """The keys of the texts, one row of keys for each."""
    if not choices:
        return keys
    rows = keys.rows[:, None] * jnp.uint32(choices) + jnp.arange(choices, dtype=jnp.uint32)
    return dataclasses.replace(keys, rows=rows.reshape(-1))


def by_row(logits: Array, example: Mapping[str, Array], choices: int) -> Array:
    """Logits of the texts [texts, ...] as those of rows: [batch, choices, ...] where there are choices, HIDDEN for an empty one."""
    if not choices:
        return logits
    there = (example["segments"] > 0).any(axis=-1)
    rows = logits.reshape(*there.shape, *logits.shape[1:])
    return jnp.where(there.reshape(*there.shape, *(1,) * (logits.ndim - 1)), rows, HIDDEN)
