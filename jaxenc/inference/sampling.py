"""Which token comes next: pure functions of logits and keys, and the pieces that are never generated."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.layers.softmax import NEVER


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
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError(f"temperature is {self.temperature}: it takes 0, for the most probable token, or a positive number")
        if self.top_k < 0:
            raise UserError(f"top_k is {self.top_k}: it takes 0, for all tokens, or how many to draw from")
        if not 0 <= self.seed < 2**31:
            raise UserError(f"seed is {self.seed}: it lies in 0 .. 2^31 - 1")


def ends(vocabulary: Vocabulary) -> frozenset[int]:
    """The pieces that end a text, as rows of training end: SEP, and the end of a document where the vocabulary has one."""
    return frozenset(index for index in (vocabulary.sep, vocabulary.eod) if index >= 0)


def allowed(vocabulary: Vocabulary, rows: int) -> np.ndarray:
    """bool [rows], true for the pieces that may be generated: text, and what ends it.

    Never: rows of the table without a piece, unknown pieces, padding, masks, CLS and every other reserved piece.
    """
    out = np.arange(rows) < vocabulary.size
    barred = {*vocabulary.reserved, vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.mask} - ends(vocabulary)
    out[[index for index in barred if index >= 0]] = False
    return out


def choose(logits: Array, keys: Array, temperature: Array | None, top_k: int) -> Array:
    """The next token of each row, i32 [rows].

    logits: float32 [rows, pieces], NEVER for a piece that must not come. keys: [rows]; each draw is a function of its row's key and logits.
    temperature: a positive scalar, or None for the most probable piece. top_k: how many of the most probable pieces are drawn from, 0 for
    all. Of equal logits the first counts as the larger.
    """
    if temperature is None:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    # From the largest logit, so that a temperature near 0 overflows to -inf, which no draw takes, and never to inf.
    scaled = (logits - jnp.max(logits, axis=-1, keepdims=True)) / temperature
    if not top_k:
        return _drawn(scaled, keys)
    best, ids = jax.lax.top_k(scaled, top_k)
    return jnp.take_along_axis(ids, _drawn(best, keys)[:, None], axis=-1)[:, 0]


def _drawn(logits: Array, keys: Array) -> Array:
    return jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)


def restricted(logits: Array, may: Array) -> Array:
    """`logits` [..., pieces] with NEVER where `may`, bool [pieces], is false."""
    return jnp.where(may, logits, NEVER)
