"""The first state of a run: restored, initialised with another run's parameters, or fresh."""

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


def fresh_heads(start: Start, objective: Objective) -> tuple[str, ...]:
    """The heads of `objective` whose parameters must be initialised: neither the run that `start` takes parameters from nor `start.moved`
    has any of them."""
    if start.kind != "init":
        return ()
    own, _ = parameters(objective)
    unfilled = [name for name in objective.heads if name in own and not any(under(new, name) for new, _ in start.moved)]
    return restore.lacking(start.path, unfilled)


def begin(start: Start, plan: tuple[Phase, ...], seed: int, layout: Callable[[Phase], Layout], fresh: Collection[str] = ()) -> State:
    """The state at `start`, on the mesh of `layout`; call it under `jax.set_mesh`.

    fresh: the result of `fresh_heads`; these are initialised from the seed as in a fresh run, and every other parameter is restored.
    Raises UserError where the checkpoint does not fit.
    """
    place = layout(phases.saved_by(plan, start.step))
    if start.kind in ("resume", "continue"):
        return restore.restore_state(start.path, place.abstract)
    state = place.create(rng.init_key(seed))
    if start.kind == "fresh":
        return state
    wanted = {name: branch for name, branch in place.abstract.all_params.items() if name not in fresh}
    read = dict(tree.leaves(restore.restore_params(start.path, wanted, start.moved)))
    pick = lambda branch: tree.map_with_path(lambda path, drawn: drawn if path.split("/")[0] in fresh else read[path], branch)
    return dataclasses.replace(state, params=pick(state.params), frozen=pick(state.frozen))


@jax.jit
def _finite(branch: Tree) -> Array:
    return jax.tree.reduce(lambda a, leaf: a & jnp.isfinite(leaf).all(), branch, jnp.bool_(True))


def is_finite(state: State) -> bool:
    """Whether every number of a state is finite; a run never starts from and never saves a state that is not."""
    return bool(_finite((state.all_params, state.moments, state.carry)))
