"""The state that a run begins with: restored whole, with another run's parameters, or fresh."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxenc import rng, tree
from jaxenc.checkpoint import restore
from jaxenc.checkpoint.restore import Start
from jaxenc.train import phases
from jaxenc.train.phases import Phase
from jaxenc.train.state import Layout, State


def begin(start: Start, plan: tuple[Phase, ...], seed: int, layout: Callable[[Phase], Layout]) -> State:
    """The state at `start`, on the mesh of `layout`; call it under `jax.set_mesh`.

    Raises UserError where the checkpoint does not fit.
    """
    place = layout(phases.saved_by(plan, start.step))
    if start.kind in ("resume", "continue"):
        return restore.restore_state(start.path, place.abstract)
    state = place.create(rng.init_key(seed))
    if start.kind == "fresh":
        return state
    read = dict(tree.leaves(restore.restore_params(start.path, place.abstract.all_params)))
    pick = lambda branch: tree.map_with_path(lambda path, _: read[path], branch)
    return dataclasses.replace(state, params=pick(state.params), frozen=pick(state.frozen))


def is_finite(state: State) -> bool:
    """Whether every parameter is a finite number: a run never starts from one that is not."""
    finite = jax.jit(lambda params: jax.tree.reduce(lambda a, leaf: a & jnp.isfinite(leaf).all(), params, True))
    return bool(finite(state.all_params))
