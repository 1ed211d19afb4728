"""Activation functions by name."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.errors import UserError

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
}


def check(name: str, where: str) -> None:
    """Raises UserError when no activation has this name; `where` is the field that holds it."""
    if name not in ACTIVATIONS:
        raise UserError(f"{where} is {name!r}: use one of {', '.join(ACTIVATIONS)}")


def activate(name: str, x: Array) -> Array:
    """The activation `name` of every element, computed in float32 and returned in x's dtype.

    The two GELUs (Hendrycks & Gimpel 2016) differ by up to 4.7e-4 and are not interchangeable: google-research/bert and xlnet were
    trained with the tanh form, electra and fairseq's RoBERTa with the erf form, and transformers runs all four with erf.
    """
    return ACTIVATIONS[name](x.astype(jnp.float32)).astype(x.dtype)
