"""Draws initial parameters and computes nothing else."""

from collections.abc import Callable

import jax
from jax import Array
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters import partial_eval

from jaxenc.tree import Tree


def draw(init: Callable[[Array], Tree], key: Array) -> Tree:
    """`init(key)`, bit for bit, one operation at a time.

    Flax's `lazy_init` runs the whole model around the initializers and leaves a small program, which is compiled and does nothing, for each
    operation that reads an input. Here `init` is traced, and only what its results depend on is run: half of the programs.
    """
    traced, shapes = jax.make_jaxpr(init, return_shape=True)(key)
    needed, _ = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars), instantiate=True)
    leaves = jaxpr_as_fun(ClosedJaxpr(needed, traced.consts))(key)
    return jax.tree.unflatten(jax.tree.structure(shapes), leaves)
