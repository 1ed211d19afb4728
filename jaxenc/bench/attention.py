"""How fast each backend of attention is on this machine, and how far that is from the rate of a matrix product."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import precision, rng
from jaxenc.bench.clock import seconds_a_call
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers import attend
from jaxenc.layers.visible import Visible
from jaxenc.sharding.mesh import platform

WARM_UP = 3
# Rows and columns of the plain product: large enough to reach an accelerator's rate, small enough for a CPU.
PRODUCT, PRODUCT_ON_CPU = 8192, 1024


@dataclasses.dataclass(frozen=True)
class Work:
    """One layer's attention over full rows. precision: `float32` or `bfloat16`, of its inputs and products. dropout: of the weights."""

    rows: int
    length: int
    heads: int
    head_size: int
    dropout: float
    precision: str

    def __post_init__(self) -> None:
        for name in ("rows", "length", "heads", "head_size"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}", fix="it takes 1 or more")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout is {self.dropout}", fix="it takes 0 or more and less than 1")

    @property
    def forward_flops(self) -> float:
        """Of its two products, q · k and weights · v: 4 · rows · heads · length² · head_size."""
        return 4.0 * self.rows * self.heads * self.length**2 * self.head_size


@dataclasses.dataclass(frozen=True)
class AttentionTiming:
    """One backend's time, medians over groups of queued calls on one device.

    tflops: model TFLOP/s of forward and backward pass together, which count as six products as in model FLOPs utilisation: two forward and
    four backward, although a kernel that recomputes the scores makes five there. product_tflops: what one large plain product of the same
    precision reaches in the same call. product_share: tflops / product_tflops.
    """

    device: str
    backend: str
    forward_ms: float
    forward_backward_ms: float
    tflops: float
    product_tflops: float
    product_share: float


def time_product(name: str, calls: int) -> float:
    """FLOP/s of a product of two square matrices in the precision `name`."""
    size, dtype = PRODUCT_ON_CPU if jax.devices()[0].platform == "cpu" else PRODUCT, precision.policy(name).compute
    a, b = (jax.random.normal(key, (size, size), dtype) for key in jax.random.split(jax.random.key(0)))
    return 2 * size**3 / _seconds(jnp.dot, (a, b), calls)


def time_attention(work: Work, backend: str, product: float, calls: int) -> AttentionTiming:
    """Times `backend`, one of `attend.BACKENDS`. product: the answer of `time_product`. calls: of each pass, after three to warm up.

    Raises UserError for a backend that cannot run here.
    """
    device, policy = jax.devices()[0], precision.policy(work.precision)
    chosen = attend.resolve(backend, platform(device), policy.compute, work.dropout, work.length)
    forward, both = _passes(work, Execution(policy, chosen, "none", False))
    shape, keys = (work.rows, work.length, work.heads, work.head_size), jax.random.split(jax.random.key(1), 4)
    q, k, v, slope = (jax.random.normal(key, shape, policy.compute) for key in keys)
    lengths = jnp.full((work.rows,), work.length, jnp.int32)
    try:
        seconds = _seconds(forward, (q, k, v, lengths), calls), _seconds(both, (q, k, v, lengths, slope), calls)
    except (ValueError, NotImplementedError, RuntimeError) as error:  # as jax refuses a shape that the backend does not take
        raise UserError(
            f"attention {chosen} does not run on this shape ({error})", fix="choose other sizes, such as a --length of 512"
        ) from error
    rate = 3 * work.forward_flops / seconds[1]
    return AttentionTiming(
        device.device_kind,
        chosen,
        forward_ms=seconds[0] * 1e3,
        forward_backward_ms=seconds[1] * 1e3,
        tflops=rate / 1e12,
        product_tflops=product / 1e12,
        product_share=rate / product,
    )


def _passes(work: Work, execution: Execution) -> tuple[Callable[..., Array], Callable[..., tuple[Array, ...]]]:
    """The forward pass as a function of (q, k, v, lengths), and both as one of (q, k, v, lengths, slope) to all gradients."""

    def forward(q: Array, k: Array, v: Array, lengths: Array) -> Array:
        noise = rng.training(0, jnp.int32(0), work.rows) if work.dropout else None
        return attend.attend(q, k, v, Visible.by_lengths(lengths), execution, work.dropout, noise, 0)

    def both(q: Array, k: Array, v: Array, lengths: Array, slope: Array) -> tuple[Array, ...]:
        return jax.vjp(functools.partial(forward, lengths=lengths), q, k, v)[1](slope)

    return forward, both


def _seconds(run: Callable[..., Any], given: tuple[Array, ...], calls: int) -> float:
    compiled = jax.jit(run).lower(*given).compile()
    for _ in range(WARM_UP):
        jax.block_until_ready(compiled(*given))
    return seconds_a_call(lambda: compiled(*given), calls).wall
