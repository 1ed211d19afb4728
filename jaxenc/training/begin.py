"""The first state of a run: restored, initialised with another run's parameters, or fresh."""

import dataclasses
from collections.abc import Callable, Collection, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import rng, tree
from jaxenc.checkpoint import restore
from jaxenc.checkpoint.moved import under
from jaxenc.checkpoint.restore import Start
from jaxenc.heads.contract import Fitted
from jaxenc.objectives.base import TEACHER, Objective
from jaxenc.training import phases
from jaxenc.training.phases import Phase
from jaxenc.training.state import Layout, State, parameters, without
from jaxenc.tree import Tree


def fresh_heads(start: Start, objective: Objective) -> tuple[str, ...]:
    """The heads of `objective` whose parameters must be initialised: neither the run that `start` takes parameters from nor `start.moved`
    has any of them."""
    if start.kind != "init":
        return ()
    own, _ = parameters(objective)
    unfilled = [name for name in objective.heads if name in own and not any(under(new, name) for new, _ in start.moved)]
    return restore.lacking(start.path, unfilled)


def renamed_heads(start: Start, objective: Objective, classes: Sequence[str], saved: Sequence[str]) -> tuple[str, ...]:
    """The heads of `objective` that were trained for other classes in the run that `start` takes parameters from. They are initialised,
    since their parameters would give the answers of one class the name of another.

    classes, saved: the names of this run's classes and of that run's, in the order of the logits; the case of letters does not matter.
    """
    same = [name.casefold() for name in classes] == [name.casefold() for name in saved]
    if start.kind != "init" or same or not saved:
        return ()
    heads = [name for name, one in objective.heads.items() if isinstance(one, Fitted) and one.head.classifies]
    named = [name for name in heads if not any(under(new, name) for new, _ in start.moved)]
    lacking = restore.lacking(start.path, named)
    return tuple(name for name in named if name not in lacking)


def begin(
    start: Start,
    plan: tuple[Phase, ...],
    seed: int,
    layout_of: Callable[[Phase], Layout],
    objective: Objective,
    fresh: Collection[str] = (),
    load_teacher: Callable[[Tree], Tree] | None = None,
) -> State:
    """The state at `start`, on the mesh of the layouts; call it under `jax.set_mesh`.

    objective: of the first phase. fresh: the results of `fresh_heads` and `renamed_heads`; these are initialised from the seed as in a
    fresh run, and every other parameter is restored. load_teacher: for an objective with a teacher, from the shapes of its parameters, with
    shardings, to the parameters (`training.teacher.load_params`). Raises UserError where a checkpoint does not fit.
    """
    layout = layout_of(phases.saved_by(plan, start.step))
    teacher = load_teacher(layout.abstract.frozen[TEACHER]) if load_teacher else {}
    if start.kind in ("resume", "continue"):
        state = restore.restore_state(start.path, layout.abstract.without(objective.frozen))
    else:
        state = layout.create(rng.init_key(seed)).without(objective.frozen)
    if start.kind == "init":
        wanted = without(layout.abstract.without(objective.frozen).all_params, fresh)
        state = _with(state, restore.restore_params(start.path, wanted, start.moved))
    if not teacher:
        return state
    if start.kind == "fresh":
        # The step donates the arrays of its state, so the student needs copies.
        copies = jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), objective.init_from_teacher(state.all_params, teacher))
        state = _with(state, copies)
    return dataclasses.replace(state, frozen={**state.frozen, TEACHER: teacher})


def _with(state: State, given: Tree) -> State:
    """`state` with the parameters in `given` replacing its own, with the same shardings."""
    found = dict(tree.leaves(given))
    pick = lambda path, own: jax.device_put(found[path], own.sharding) if path in found else own
    return dataclasses.replace(state, params=tree.map_with_path(pick, state.params), frozen=tree.map_with_path(pick, state.frozen))


@jax.jit
def _finite(branch: Tree) -> Array:
    return jax.tree.reduce(lambda a, leaf: a & jnp.isfinite(leaf).all(), branch, jnp.bool_(True))


def is_finite(state: State) -> bool:
    """Whether every number of a state is finite; a run never starts from and never saves a state that is not."""
    return bool(_finite((state.all_params, state.moments, state.carry)))
