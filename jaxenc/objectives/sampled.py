"""A softmax over the target and a sample of the other ids, for vocabularies that are too large for all of them (Jean et al. 2015)."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.layers.product import wide_product
from jaxenc.layers.softmax import NEVER

# Newton's steps add digits by pairs; what is left is rounding.
CLOSE = 1e-10


@dataclasses.dataclass(frozen=True)
class LogUniform:
    """`count` distinct ids of 0 .. size - 1, an id k as likely as p(k) = log((k + 2) / (k + 1)) / log(size + 1).

    This is Zipf's law nearly, so the ids must run by falling frequency (TensorFlow's log_uniform_candidate_sampler, which bilm-tf's
    training.py draws from). TensorFlow draws with replacement, drops what it has already, and stops at the `count`-th id. Which set that
    gives has the law of the `count` largest of log p(k) + Gumbel noise (Yellott 1977), which have a fixed cost and shape: these are drawn.
    One thing differs. The loop's number of tries, from which TensorFlow takes the expected counts, is random there; here it is `tries`,
    one number for all draws.
    """

    size: int
    count: int

    def __post_init__(self) -> None:
        if not 0 < self.count <= self.size:
            raise ValueError(f"{self.count} distinct ids of {self.size}")

    @functools.cached_property
    def tries(self) -> float:
        """The number of draws with replacement among which `count` ids are distinct on average: the t of Σ (1 - (1 - p)^t) = count.

        Infinite where every id is drawn.
        """
        if self.count == self.size:
            return math.inf
        k = np.arange(self.size, dtype=np.float64)
        slope = np.log1p(-np.log1p(1 / (k + 1)) / math.log(self.size + 1))
        # The sum is concave in t, so that Newton's steps from below never pass the root.
        tries, step = float(self.count), math.inf
        while step > CLOSE * tries:
            left = np.exp(tries * slope)
            step = (self.count - np.sum(1 - left)) / np.sum(-slope * left)
            tries += step
        return tries

    def probability(self, ids: Array) -> Array:
        """p(k) float32 of ids i32, each below `size`."""
        return jnp.log1p(1 / (ids + 1).astype(jnp.float32)) / math.log(self.size + 1)

    def draw(self, key: Array) -> Array:
        """i32 [count], distinct; key: one typed key."""
        scores = jnp.log(self.probability(jnp.arange(self.size))) + jax.random.gumbel(key, (self.size,), jnp.float32)
        return jax.lax.top_k(scores, self.count)[1]

    def log_expected(self, ids: Array) -> Array:
        """log(1 - (1 - p)^tries) float32 of ids i32: of how often a draw holds the id, on average."""
        return jnp.log(-jnp.expm1(self.tries * jnp.log1p(-self.probability(ids))))


TableRows = tuple[Array, Array]


def cross_entropy(
    law: LogUniform, hidden: Array, targets: Array, weights: Array, ids: Array, of_targets: TableRows, of_ids: TableRows
) -> tuple[Array, Array]:
    """As `losses.cross_entropy`, of the softmax over the target and the drawn `ids`, every logit less the log of its expected count.

    An id that is the target itself takes no part. With all ids drawn it is the full softmax; with fewer its gradient is biased
    (sampled_softmax_loss of TensorFlow, with its defaults).

    hidden: [..., width] in the compute dtype; targets: i32 [...]; weights: i32 or f32 [...]; ids: i32 [count], drawn from `law`.
    of_targets, of_ids: (rows of the table, their biases), float32: ([..., width], [...]) and ([count, width], [count]).
    """
    rows, bias = of_targets
    target = jnp.sum(hidden.astype(jnp.float32) * rows.astype(hidden.dtype).astype(jnp.float32), axis=-1) + bias - law.log_expected(targets)
    rows, bias = of_ids
    others = wide_product("...w,vw->...v", hidden, rows.astype(hidden.dtype)) + (bias - law.log_expected(ids))
    others = jnp.where(targets[..., None] == ids, NEVER, others)
    losses = jax.nn.softplus(jax.nn.logsumexp(others, axis=-1) - target)
    correct = target >= jnp.max(others, axis=-1)
    weights = weights.astype(jnp.float32)
    return jnp.sum(losses * weights), jnp.sum(correct * weights)
