"""Which dtype each part of a step uses."""

import dataclasses

import jax.numpy as jnp

from jaxenc.errors import UserError


@dataclasses.dataclass(frozen=True)
class Policy:
    """Dtypes by name.

    `params` holds parameters, moments, LayerNorm statistics, softmax and losses; `compute` the matrix products, activations and the
    carry; `logits` what a vocabulary projection accumulates in.
    """

    params: jnp.dtype
    compute: jnp.dtype
    logits: jnp.dtype


def policy(name: str) -> Policy:
    """`float32` for tests and tiny recipes, `bfloat16` for accelerators: bfloat16 products over float32 parameters.

    There are no bfloat16 parameters: at small learning rates their updates round to zero (w = 1.0 is still 1.0 after 100 AdamW steps of
    1e-4). Raises UserError for another name.
    """
    if name not in ("float32", "bfloat16"):
        raise UserError(f"train.precision is {name!r}", fix="use float32 or bfloat16")
    return Policy(params=jnp.dtype("float32"), compute=jnp.dtype(name), logits=jnp.dtype("float32"))
