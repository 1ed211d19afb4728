"""The state that a run begins with: restored whole, with another run's parameters, or fresh."""

import dataclasses
from collections.abc import Callable, Collection

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import rng, tree
from jaxenc.checkpoint import restore
from jaxenc.checkpoint.moved import under
from jaxenc.checkpoint.restore import Start
from jaxenc.objectives.base import Objective
from jaxenc.training import phases
from jaxenc.training.phases import Phase
from jaxenc.training.state import Layout, State, parameters
from jaxenc.tree import Tree


def heads_afresh(start: Start, objective: Objective) -> tuple[str, ...]:
    """The heads of `objective` that have parameters, of which the run whose parameters `start` takes has none and `start.moved` fills
    none."""
    if start.kind != "init":
        return ()
    own, _ = parameters(objective)
    unfilled = [name for name in objective.heads if name in own and not any(under(new, name) for new, _ in start.moved)]
    return restore.lacking(start.path, unfilled)


def begin(start: Start, plan: tuple[Phase, ...], seed: int, layout: Callable[[Phase], Layout], afresh: Collection[str] = ()) -> State:
    """The state at `start`, on the mesh of `layout`; call it under `jax.set_mesh`.

    afresh: what `heads_afresh` found: these are drawn from the seed, as a fresh run draws them, and every other parameter is read.
    Raises UserError where the checkpoint does not fit.
    """
    place = layout(phases.saved_by(plan, start.step))
    if start.kind in ("resume", "continue"):
        return restore.restore_state(start.path, place.abstract)
    state = place.create(rng.init_key(seed))
    if start.kind == "fresh":
        return state
    wanted = {name: branch for name, branch in place.abstract.all_params.items() if name not in afresh}
    read = dict(tree.leaves(restore.restore_params(start.path, wanted, start.moved)))
    pick = lambda branch: tree.map_with_path(lambda path, drawn: drawn if path.split("/")[0] in afresh else read[path], branch)
    return dataclasses.replace(state, params=pick(state.params), frozen=pick(state.frozen))


@jax.jit
def _finite(branch: Tree) -> Array:
    return jax.tree.reduce(lambda a, leaf: a & jnp.isfinite(leaf).all(), branch, jnp.bool_(True))


def is_finite(state: State) -> bool:
    """Whether every number of a state is finite: a run never starts from one that is not, and never saves it."""
    return bool(_finite((state.all_params, state.moments, state.carry)))
