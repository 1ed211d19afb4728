"""Gradual unfreezing: parameters that start to train at a later step of the schedule (Howard and Ruder 2018, section 3.3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxenc import tree
from jaxenc.config import LARGEST
from jaxenc.errors import UserError
from jaxenc.optim import masks
from jaxenc.tree import Tree


def starts(unfreeze: Sequence[str], trained: Tree, params: Tree) -> Tree:
    """A tree of int like `trained`: the STEP of the first item `PATTERN=STEP` of `unfreeze` (`optim.unfreeze`) whose PATTERN matches the
    whole path, else 0.

    trained: the part of `params` that `optim.freeze` does not freeze. Raises UserError for an item without a step of 0 or more, for a
    pattern that matches no path or only frozen ones, and when nothing trains from step 0.
    """
    pairs = masks.numbered("optim.unfreeze", unfreeze, "STEP", int, LARGEST, "embeddings/.*=100", params)
    for pattern, _ in pairs:
        if not any(masks.matcher([pattern])(path) for path, _ in tree.leaves(trained)):
            raise UserError(
                f"optim.freeze freezes all that {pattern!r} matches for the whole run",
                "optim.unfreeze",
                "drop the pattern from one of the two",
            )
    out = masks.by_first_match(pairs, 0, trained)
    first = min(step for _, step in tree.leaves(out))
    if first:
        raise UserError(f"nothing is trained before step {first}", "optim.unfreeze", "leave out what is to train from the first step")
    return out


def begun(values: Tree, starts: Tree, clock: Array) -> Tree:
    """`values`, with zeros instead of the leaves that do not train yet. clock: i32, the step in the phase's schedule."""
    return jax.tree.map(lambda leaf, start: jnp.where(clock >= start, leaf, 0) if start else leaf, values, starts)


def in_turn(starts: Tree, chain: Callable[[Tree], optax.GradientTransformation]) -> optax.GradientTransformationExtraArgs:
    """One transformation of all parameters from one for each step at which some start to train.

    starts: a tree of int like the parameters. chain: the transformation of parameters with the paths of the tree that it is given. The
    state is a dict with an item `from_STEP` for each step. The update takes the i32 `clock`; before a part starts, its direction is 0
    and its state does not change. Each part counts its own updates, so that Adam's bias correction starts when the part does.
    """
    chains = {step: chain(_part(starts, starts, step)) for step in sorted({step for _, step in tree.leaves(starts)})}
    name = lambda step: f"from_{step}"

    def init(params: Tree) -> dict[str, Any]:
        return {name(step): one.init(_part(params, starts, step)) for step, one in chains.items()}

    def update(grads: Tree, state: Mapping[str, Any], params: Tree | None = None, *, clock: Array, **others: Any) -> tuple[Tree, Any]:
        directions, after = {}, {}
        for step, one in chains.items():
            before = state[name(step)]
            direction, moved = one.update(_part(grads, starts, step), before, _part(params, starts, step))
            if step:
                now = clock >= step
                direction = jax.tree.map(lambda leaf, now=now: jnp.where(now, leaf, 0), direction)
                moved = jax.tree.map(lambda new, old, now=now: jnp.where(now, new, old), moved, before)
            directions, after[name(step)] = tree.merge(directions, direction), moved
        return directions, after

    return optax.GradientTransformationExtraArgs(init, update)


def _part(values: Tree, starts: Tree, step: int) -> Tree:
    """The leaves of `values` whose entry in `starts` is `step`."""
    chosen = {path for path, start in tree.leaves(starts) if start == step}
    return tree.split(values, chosen.__contains__)[0]
