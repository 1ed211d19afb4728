"""Sampling of the next token: pure functions of logits and keys, and the tokens that are never generated."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError

# Temperatures that float32 does not round to 0 or to infinity.
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-30, 1e30


@dataclasses.dataclass(frozen=True)
class Sampling:
    """The rule by which tokens are chosen. Raises UserError for numbers out of range.

    temperature: of the softmax that tokens are drawn from, 0 for the most probable token. top_k: how many of the most probable tokens are
    drawn from, 0 for all. seed: of the draws.
    """

    temperature: float = 0.0
    top_k: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature != 0 and not MIN_TEMPERATURE <= self.temperature <= MAX_TEMPERATURE:
            takes = f"0, for the most probable token, or a number from {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}"
            raise UserError(f"temperature is {self.temperature}", fix=f"it takes {takes}")
        if self.top_k < 0:
            raise UserError(f"top_k is {self.top_k}", fix="it takes 0, for all tokens, or how many to draw from")
        if not 0 <= self.seed < 2**31:
            raise UserError(f"seed is {self.seed}", fix="it takes 0 to 2^31 - 1")


def end_tokens(vocabulary: Vocabulary) -> frozenset[int]:
    """The tokens that end a text, as they end the training rows: SEP, and the end of a document where the vocabulary has one."""
    return frozenset(index for index in (vocabulary.sep, vocabulary.eod) if index >= 0)


def allowed_tokens(vocabulary: Vocabulary, rows: int) -> np.ndarray:
    """bool [rows], true for the tokens that may be generated: text, and the tokens that end it.

    Never: rows of the table without a piece, the unknown token, padding, masks, CLS and every other reserved token.
    """
    out = np.arange(rows) < vocabulary.size
    never = {*vocabulary.reserved, vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.mask} - end_tokens(vocabulary)
    out[[index for index in never if index >= 0]] = False
    return out


def choose(logits: Array, allowed: Array, keys: Array, temperature: Array | None, top_k: int) -> Array:
    """The next token of each row, i32 [rows].

    logits: float32 [rows, vocabulary]. allowed: bool [vocabulary]; the others have probability 0. keys: [rows]; each draw is a function of
    the key and the logits of its row. temperature: a positive scalar, or None for the most probable token. top_k: how many of the most
    probable tokens are sampled from, 0 for all. Of equal logits the first counts as the larger.
    """
    logits = jnp.where(allowed, logits, -jnp.inf)
    if temperature is None:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    # From the largest logit: near temperature 0 the others overflow to -inf, which is never drawn, and none to inf.
    scaled = (logits - jnp.max(logits, axis=-1, keepdims=True)) / temperature
    if not top_k:
        return _drawn(scaled, keys)
    best, ids = jax.lax.top_k(scaled, top_k)
    return jnp.take_along_axis(ids, _drawn(best, keys)[:, None], axis=-1)[:, 0]


def _drawn(logits: Array, keys: Array) -> Array:
    return jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)
