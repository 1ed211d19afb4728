"""Scaled dot-product attention: one function, one argument that says which keys a query sees, several backends."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers.dropout import dropout
from jaxenc.layers.product import wide_product
from jaxenc.rng import Keys

# The score of a hidden key: finite, so that a softmax over hidden keys alone is not NaN.
HIDDEN = -1e30


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Visible:
    """Which keys each query sees: those that every field that is set allows; all keys where none is.

    At most one of lengths and keys is set: both say what is padding. bias is not a yes or no: it is added to the scores, and hides a key
    where it is HIDDEN or less. causal: no query sees a key after its own place. Raises ValueError for lengths together with keys.
    """

    lengths: Array | None = None
    keys: Array | None = None
    segments: Array | None = None
    bias: Array | None = None
    causal: bool = dataclasses.field(default=False, metadata={"static": True})

    def __post_init__(self) -> None:
        if self.lengths is not None and self.keys is not None:
            raise ValueError("lengths and keys both say what is padding: set one of them")

    @staticmethod
    def by_lengths(lengths: Array) -> "Visible":
        """Every query, padded ones too, sees the first lengths[row] keys (google-research/bert masks keys only); i32 [batch]."""
        return Visible(lengths=lengths)

    @staticmethod
    def by_keys(keys: Array) -> "Visible":
        """Every query sees the keys that are not 0, wherever they stand: padding on the left, holes; bool or i32 [batch, length]."""
        return Visible(keys=keys)

    @staticmethod
    def by_segments(segments: Array) -> "Visible":
        """A query sees the keys of its own segment: packed texts do not see one another, nor padding; i32 [batch, length]."""
        return Visible(segments=segments)

    @staticmethod
    def by_bias(bias: Array) -> "Visible":
        """`bias` [batch, heads, length, length] is added to the scaled scores; HIDDEN (-1e30) or less, -inf too, hides a key."""
        return Visible(bias=bias)

    def causally(self) -> "Visible":
        """The same, less the keys after each query's own place."""
        return dataclasses.replace(self, causal=True)

    @property
    def can_hide_all(self) -> bool:
        """Whether a query may see no key although its row is not all padding: never by lengths, keys or segments alone."""
        rules = sum(rule is not None for rule in (self.lengths, self.keys, self.segments))
        return self.causal or self.bias is not None or rules > 1

    def pairs(self, length: int) -> Array:
        """bool [batch or 1, length or 1, length], whether each query sees each key; 1 where rows or queries do not differ.

        Raises ValueError for a bias, which has no yes or no.
        """
        if self.bias is not None:
            raise ValueError("a bias says how much a query sees of a key, not whether")
        return functools.reduce(jnp.logical_and, self._rules(length))

    def sees(self, length: int) -> Array:
        """`pairs` with an axis of heads, bool [batch or 1, heads or 1, length or 1, length], less what a bias hides."""
        hidden = [] if self.bias is None else [self.bias > HIDDEN]
        return functools.reduce(jnp.logical_and, [*(rule[:, None] for rule in self._rules(length)), *hidden])

    def _rules(self, length: int) -> list[Array]:
        """What each field but the bias allows, bool [batch or 1, length or 1, length]; at least one."""
        rules = []
        if self.lengths is not None:
            rules.append((jnp.arange(length) < self.lengths[:, None])[:, None])
        if self.keys is not None:
            rules.append((self.keys != 0)[:, None])
        if self.segments is not None:
            rules.append(self.segments[:, :, None] == self.segments[:, None, :])
        if self.causal:
            rules.append(jnp.tri(length, dtype=bool)[None])
        return rules or [jnp.ones((1, 1, length), bool)]


def resolve(backend: str, platform: str, compute: jnp.dtype, dropout_rate: float) -> str:
    """The backend, `xla` or `cudnn`, for the choice `auto`, `xla` or `cudnn` on a platform (`cpu`, `gpu`, `tpu`).

    `auto` is cudnn on a GPU in bfloat16 without attention dropout, which its public interface does not offer, and xla elsewhere.
    Decided beforehand, because a failed call only shows when the step compiles. Raises UserError for cudnn where it cannot run.
    """
    fused = platform in ("gpu", "cuda") and jnp.dtype(compute) == jnp.bfloat16 and dropout_rate == 0
    if backend == "cudnn" and not fused:
        raise UserError(
            f"attention is 'cudnn' on {platform} with {jnp.dtype(compute)} and attention_dropout {dropout_rate}: it runs on a gpu with "
            "train.precision=bfloat16 and attention_dropout=0; use 'auto' or 'xla' here"
        )
    if backend not in ("auto", "xla", "cudnn"):
        raise UserError(f"attention is {backend!r}: use auto, xla or cudnn")
    return ("cudnn" if fused else "xla") if backend == "auto" else backend


def attend(
    q: Array, k: Array, v: Array, visible: Visible, execution: Execution, rate: float, noise: Keys | None, layer: int | Array
) -> Array:
    """softmax(q · k / sqrt(d)) · v with dropout on the weights (Vaswani et al. 2017).

    q, k, v and the result are [batch, length, heads, d] in the compute dtype; scores and softmax are float32. A query that sees no key gets
    exactly 0, with one exception: by lengths, keys or segments alone only the queries of a row of padding see none. They get some average
    of its values, and nothing reads it.
    Raises ValueError for an unknown backend, and for what cudnn does not do: attention dropout and any mask but lengths, causal or not.
    """
    if execution.attention == "xla":
        return _xla(q, k, v, visible, rate, noise, layer)
    if execution.attention == "cudnn":
        return _cudnn(q, k, v, visible, 0.0 if noise is None else rate)
    raise ValueError(f"attention backend {execution.attention!r} is not xla or cudnn: pass the answer of layers.attend.resolve")


def where_seen(mixed: Array, sees: Array) -> Array:
    """mixed [batch, queries, heads, d], the weighted sum of values, with exactly 0 for a query that sees no key, and gradients of 0 there.

    sees: bool [batch, 1 or heads, 1 or queries, keys]. The softmax of a query whose keys are all hidden is uniform: it would read every
    key, including those that it must not see. google-research/bert, zihangdai/xlnet and transformers do that, so the first prediction of an
    XLNet row without memory reads its own answer there. Ours differs on purpose.
    """
    # On the sum, not on the weights: they are length times larger, and another operation on them changes how XLA rounds the rest.
    some = jnp.any(sees, axis=-1, keepdims=True)
    return jnp.where(jnp.swapaxes(some, 1, 2), mixed, 0)


def _xla(q: Array, k: Array, v: Array, visible: Visible, rate: float, noise: Keys | None, layer: int | Array) -> Array:
    scores = wide_product("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = scores if visible.bias is None else scores + visible.bias.astype(scores.dtype)
    sees = visible.sees(scores.shape[-1])
    weights = jax.nn.softmax(jnp.where(sees, scores, HIDDEN), axis=-1)
    weights = dropout(weights, rate, noise, "attention_weights", layer).astype(v.dtype)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return where_seen(mixed, sees) if visible.can_hide_all else mixed


def _cudnn(q: Array, k: Array, v: Array, visible: Visible, rate: float) -> Array:
    if rate > 0:
        raise ValueError(f"attention backend cudnn has no dropout: set attention_dropout to 0 (it is {rate}) or the backend to xla")
    if visible.lengths is None or visible.segments is not None or visible.bias is not None:
        raise ValueError("attention backend cudnn takes lengths only: set the backend to xla for keys, segments or a bias")
    # A softmax over no key at all is undefined in the kernel: a row of padding sees its first key instead, and weighs nothing. By lengths
    # every query sees the first key, a causal one too.
    lengths = jnp.maximum(visible.lengths, 1)
    # The kernel's backward pass takes even lengths only: one more place at the end, which no query sees.
    odd = q.shape[1] % 2
    q, k, v = (jnp.pad(x, ((0, 0), (0, odd), (0, 0), (0, 0))) for x in (q, k, v))
    out = jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths, is_causal=visible.causal, implementation="cudnn")
    return out[:, : out.shape[1] - odd]
