"""Scaled dot-product attention with several backends."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers.dropout import dropout
from jaxenc.layers.product import wide_product
from jaxenc.layers.visible import HIDDEN, Visible
from jaxenc.rng import Keys

# {backend: what it is}; cudnn has no dropout; the kernels of pallas are in `fused.py` and `fused_relative.py`.
DESCRIBED = {"xla": "plain operations", "cudnn": "NVIDIA's fused kernel", "pallas": "our fused kernel"}
BACKENDS = tuple(DESCRIBED)


class Choice(NamedTuple):
    """The backend of `auto` on a GPU for rows of at most `longest` tokens in `compute`, with or without attention dropout."""

    compute: str
    dropout: bool
    longest: float
    backend: str


# The first line that fits is taken, xla where none does. Measured on an H200 (29 November 2026, jax 0.11.2; the best of three groups of ten
# calls), forward and backward pass of 12 heads of 64, in ms. 64 rows of 512 in bfloat16: with dropout pallas 0.97 and xla 2.59, without it
# pallas 0.72 and cudnn 0.78. 256 rows of 128: with dropout pallas 0.34 and xla 1.07. 64 rows of 512 in float32, whose products do not use
# the tensor cores: pallas 20.8 and xla 4.1.
FASTEST = (
    Choice("bfloat16", False, 512, "pallas"),
    Choice("bfloat16", False, math.inf, "cudnn"),
    Choice("bfloat16", True, math.inf, "pallas"),
)
# The same for attention by relative position (`relative.py`), 32 rows of 512 of both streams: without memory pallas 2.48 and xla 3.18.
FASTEST_RELATIVE = (Choice("bfloat16", True, 512, "pallas"),)


def check(setting: str, name: str) -> None:
    """Raises UserError unless `setting`, which messages call `name`, is `auto` or one of BACKENDS."""
    if setting not in ("auto", *BACKENDS):
        raise UserError(f"{name} is {setting!r}", fix=f"use auto, {', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}")


def resolve(
    backend: str, platform: str, compute: jnp.dtype, dropout_rate: float, length: int, relative: bool = False, packed: bool = False
) -> str:
    """The backend to use, one of BACKENDS, for the setting `auto` or one of them, on a platform (the answer of `sharding.mesh.platform`)
    and for rows of `length` tokens. relative: by relative position, which cudnn does not have. packed: rows of several texts, whose mask
    cudnn does not have.

    `auto` is the fastest that can run: by FASTEST or FASTEST_RELATIVE on a GPU, xla elsewhere. It is resolved before the step is compiled,
    where a backend that cannot run would fail late. Raises UserError for pallas and cudnn where they cannot run: both need a GPU; cudnn
    also needs bfloat16 and no attention dropout, which jax's interface to it does not have.
    """
    check(backend, "attention")
    gpu, compute = platform in ("gpu", "cuda"), jnp.dtype(compute).name
    if backend == "cudnn" and relative:
        raise UserError("attention is 'cudnn', which has no relative positions", fix="use 'auto' or 'xla', or 'pallas' on a gpu")
    if backend == "cudnn" and packed:
        raise UserError("attention is 'cudnn', which has no mask for packed rows", fix="use 'auto' or 'xla', or 'pallas' on a gpu")
    if backend == "cudnn" and not (gpu and compute == "bfloat16" and dropout_rate == 0):
        raise UserError(
            f"attention is 'cudnn' on {platform} with {compute} and attention_dropout {dropout_rate}",
            fix="use 'auto' or 'xla' here; it runs on a gpu with train.precision=bfloat16 and attention_dropout=0",
        )
    if backend == "pallas" and not gpu:
        raise UserError(f"attention is 'pallas' on {platform}, and it runs on a gpu", fix="use 'auto' or 'xla' here")
    if backend != "auto":
        return backend
    table = FASTEST_RELATIVE if relative else FASTEST
    fits = (line.backend for line in table if (line.compute, line.dropout) == (compute, dropout_rate > 0) and length <= line.longest)
    fastest = next(fits, "xla") if gpu else "xla"
    return "pallas" if packed and fastest == "cudnn" else fastest


@jax.named_scope("attend")  # the name that bench/kinds.py looks for
def attend(
    q: Array, k: Array, v: Array, visible: Visible, execution: Execution, rate: float, noise: Keys | None, layer: int | Array
) -> Array:
    """softmax(q · k / sqrt(d)) · v with dropout on the weights (Vaswani et al. 2017).

    q and the result are [batch, queries, heads, d], k and v [batch, length, heads, d], all in the compute dtype; scores and softmax are
    float32. rate: of the dropout; noise: its keys, None for evaluation; layer: the number that its mask depends on. A query that sees no
    key gets exactly 0. The exception is a row of padding under lengths, keys or segments alone: its queries get an average of its values,
    which nothing reads. pallas gives them 0 too. execution.attention is the answer of `resolve`; a mask that it does not take goes to the
    backend of `for_mask`. Raises ValueError for another value, and for cudnn with dropout, which it does not have.
    """
    rate = 0.0 if noise is None else rate
    backend = for_mask(execution.attention, visible)
    if backend == "cudnn":
        return _cudnn(q, k, v, visible, rate)
    return {"xla": _xla, "pallas": _pallas}[backend](q, k, v, visible, rate, noise, layer)


def for_mask(backend: str, visible: Visible) -> str:
    """`backend`, or the one that takes its place for this mask: a bias or a cache needs xla, and keys or segments pallas instead of cudnn.

    It depends on which fields of the mask are set and not on their values. Raises ValueError unless `backend` is one of BACKENDS.
    """
    if backend not in BACKENDS:
        raise ValueError(f"attention backend {backend!r} is not one of {', '.join(BACKENDS)}: pass the answer of layers.attend.resolve")
    if visible.bias is not None or visible.places is not None:
        return "xla"
    by_lengths = visible.lengths is not None and visible.segments is None
    return "pallas" if backend == "cudnn" and not by_lengths else backend


def where_seen(mixed: Array, sees: Array) -> Array:
    """`mixed`, the weighted sums of values [batch, queries, heads, d], with exactly 0, and a gradient of 0, for a query that sees no key.

    sees: bool [batch, 1 or heads, 1 or queries, keys]. The softmax over keys that are all masked is uniform, so the query would read every
    key, including those that it must not see. google-research/bert, zihangdai/xlnet and transformers compute that: there the first
    prediction of an XLNet row without memory reads its own answer. This one differs on purpose.
    """
    # Masks the sums and not the weights, which are length times larger and whose rounding by XLA another operation would change.
    some = jnp.any(sees, axis=-1, keepdims=True)
    return jnp.where(jnp.swapaxes(some, 1, 2), mixed, 0)


def attention_weights(q: Array, k: Array, visible: Visible) -> Array:
    """float32 [batch, heads, queries, keys]: softmax(q · k / sqrt(d)) of `attend`, without dropout, and 0 for a key that is not seen."""
    weights, sees = _weigh(q, k, visible)
    return jnp.where(sees, weights, 0)


def _weigh(q: Array, k: Array, visible: Visible) -> tuple[Array, Array]:
    """(softmax over the keys that are seen, uniform where none is; `Visible.sees`)."""
    scores = wide_product("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = scores if visible.bias is None else scores + visible.bias.astype(scores.dtype)
    sees = visible.sees(scores.shape[-1])
    return jax.nn.softmax(jnp.where(sees, scores, HIDDEN), axis=-1), sees


def _xla(q: Array, k: Array, v: Array, visible: Visible, rate: float, noise: Keys | None, layer: int | Array) -> Array:
    weights, sees = _weigh(q, k, visible)
    weights = dropout(weights, rate, noise, "attention_weights", layer).astype(v.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return where_seen(mixed, sees) if visible.can_hide_all else mixed


def _pallas(q: Array, k: Array, v: Array, visible: Visible, rate: float, noise: Keys | None, layer: int | Array) -> Array:
    # JAX calls Pallas's Triton backend experimental: a version without it must still train elsewhere.
    from jaxenc.layers.fused import fused
    from jaxenc.layers.fused_kernels import Side, Spec
    from jaxenc.layers.fused_tiles import tiles

    words = jnp.stack(noise.words("attention_weights", layer), axis=1) if rate else None
    batch, length = q.shape[:2]
    rows = None if visible.lengths is None else jnp.broadcast_to(visible.lengths, (batch,))
    side = Side(rows, *(mark if mark is None else jnp.broadcast_to(mark, (batch, length)) for mark in _marks(visible)), words, None)
    return fused(q, k, v, side, Spec(visible.causal, rate, tiles(length, q.shape[-1], q.dtype)))


def _marks(visible: Visible) -> tuple[Array, Array] | tuple[None, None]:
    """i32 marks of queries and of keys [batch, length]: by `keys` and `segments` a query sees the keys whose mark is its own."""
    if visible.keys is None:
        return visible.segments, visible.segments
    own = jnp.ones(visible.keys.shape, jnp.int32) if visible.segments is None else visible.segments
    return own, jnp.where(visible.keys != 0, own, jnp.iinfo(jnp.int32).min)


def _cudnn(q: Array, k: Array, v: Array, visible: Visible, rate: float) -> Array:
    if rate > 0:
        raise ValueError(f"attention backend cudnn has no dropout: set attention_dropout to 0 (it is {rate}) or the backend to xla")
    # The kernel's softmax over no keys is undefined, so a row of padding sees its first key; its result is never used. A causal query sees
    # the first key too.
    lengths = jnp.maximum(visible.lengths, 1)
    # The kernel's backward pass needs an even length: pad by one place, which no query sees.
    odd = q.shape[1] % 2
    q, k, v = (jnp.pad(x, ((0, 0), (0, odd), (0, 0), (0, 0))) for x in (q, k, v))
    out = jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths, is_causal=visible.causal, implementation="cudnn")
    return out[:, : out.shape[1] - odd]
