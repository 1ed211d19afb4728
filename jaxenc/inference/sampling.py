"""Which token comes next: pure functions of logits and keys, and the pieces that are never generated."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError

# What a float32 takes without rounding it to 0 or to infinity.
COLDEST, HOTTEST = 1e-30, 1e30


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
        if self.temperature != 0 and not COLDEST <= self.temperature <= HOTTEST:
            takes = f"0, for the most probable token, or a number from {COLDEST:g} to {HOTTEST:g}"
            raise UserError(f"temperature is {self.temperature}: it takes {takes}")
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


def choose(logits: Array, may: Array, keys: Array, temperature: Array | None, top_k: int) -> Array:
    """The next token of each row, i32 [rows].

    logits: float32 [rows, pieces]. may: bool [pieces]; the others have probability 0. keys: [rows]; each draw is a function of its row's
    key and logits. temperature: a positive scalar, or None for the most probable piece. top_k: how many of the most probable pieces are
    drawn from, 0 for all. Of equal logits the first counts as the larger.
    """
    logits = jnp.where(may, logits, -jnp.inf)
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
