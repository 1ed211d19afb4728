"""Initial distributions of parameters."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.errors import UserError

Initializer = Callable[[Array, tuple[int, ...], jnp.dtype], Array]

zeros: Initializer = jax.nn.initializers.zeros
ones: Initializer = jax.nn.initializers.ones


def glorot_uniform(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Uniform in ± sqrt(6 / (in + out)) (Glorot and Bengio 2010), the default of TensorFlow's dense layer."""
    return jax.nn.initializers.glorot_uniform()(key, shape, dtype)


@dataclasses.dataclass(frozen=True)
class TruncatedNormal:
    """Normal draws of deviation `scale`, those beyond 2 · `scale` drawn again (google-research/bert modeling.py, create_initializer).

    `scale` is that of the distribution before the cut, as in TensorFlow: what remains has the standard deviation 0.87963 · `scale`.
    """

    scale: float

    def __call__(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
        return jax.nn.initializers.truncated_normal(self.scale, lower=-2.0, upper=2.0)(key, shape, dtype)


@dataclasses.dataclass(frozen=True)
class Normal:
    """Normal draws of deviation `scale` (fairseq: modules/transformer_sentence_encoder.py, init_bert_params; transformers)."""

    scale: float

    def __call__(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
        return jax.nn.initializers.normal(self.scale)(key, shape, dtype)


@dataclasses.dataclass(frozen=True)
class Uniform:
    """Uniform draws in ± `limit` (allenai/bilm-tf training.py: tables, convolutions)."""

    limit: float

    def __call__(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
        return jax.random.uniform(key, shape, dtype, -self.limit, self.limit)


@dataclasses.dataclass(frozen=True)
class Constant:
    """The same number everywhere."""

    value: float

    def __call__(self, key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
        return jnp.full(shape, self.value, dtype)


# Classes and not closures, so that modules which hold equal ones are equal and have one hash.
BY_NAME: dict[str, Callable[[float], Initializer]] = {"truncated_normal": TruncatedNormal, "normal": Normal}


def check(name: str, field: str) -> None:
    """Raises UserError when `field` names no initializer."""
    if name not in BY_NAME:
        raise UserError(f"{field} is {name!r}", fix=f"use one of {', '.join(BY_NAME)}")


def leading_rows(init: Initializer, rows: int) -> Initializer:
    """`init` for the first `rows` rows and zeros below them. The draws depend on `rows` alone, not on how far the table is padded."""

    def padded_init(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
        true = init(key, (rows, *shape[1:]), dtype)
        return jnp.zeros(shape, dtype).at[:rows].set(true)

    return padded_init
