"""The state of a run: the input and output of a step and the content of a checkpoint. The only file that unboxes axis names."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.core import meta
from jax import Array
from jax.sharding import Mesh

from jaxenc import rng, tree
from jaxenc.objectives.base import Objective
from jaxenc.optim import masks
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding import partition
from jaxenc.training import drawing
from jaxenc.tree import Tree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """step: i32, batches consumed; skipped: i32, non-finite steps among them; params: trained parameters, float32; frozen: parameters
    without gradient and moments; moments: the optimizer's; carry: `Objective.carry`, leading axis batch."""

    step: Array
    skipped: Array
    params: Tree
    frozen: Tree
    moments: Any
    carry: Tree

    @property
    def all_params(self) -> Tree:
        """Trained and frozen parameters in one tree, as the objective takes them."""
        return tree.merge(self.params, self.frozen)

    def without(self, names: Collection[str]) -> "State":
        """This state without the frozen parameters under the top-level keys `names`: what a checkpoint holds, names being
        `Objective.frozen`."""
        return dataclasses.replace(self, frozen=without(self.frozen, names))


@dataclasses.dataclass(frozen=True)
class Layout:
    """The shapes and shardings of a state.

    shapes: a State of ShapeDtypeStruct; names: the logical axis names of each of its parameters, as in `parameters`; shardings: a State of
    NamedSharding; create: from `rng.init_key` to the state at step 0.
    """

    shapes: State
    names: Tree
    shardings: State
    create: Callable[[Array], State]

    @property
    def abstract(self) -> State:
        """A State of ShapeDtypeStruct with shardings, to restore into."""
        place = lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.tree.map(place, self.shapes, self.shardings)

    @property
    def mesh(self) -> Mesh:
        """The mesh of the state."""
        return self.shardings.step.mesh

    def whole(self, params: Tree) -> Tree:
        """All parameters, gathered for use in the layers (`partition.gather`)."""
        return partition.gather(params, self.shardings.all_params)


def without(params: Tree, names: Collection[str]) -> Tree:
    """`params` without the branches under the top-level keys `names`."""
    return {name: branch for name, branch in params.items() if name not in names}


def parameters(objective: Objective) -> tuple[Tree, Tree]:
    """(shapes of the parameters, logical axis names of each leaf), as plain dict trees. A leaf without names, such as that of a plain Flax
    layer in a user's own head, gets None for every axis and is replicated."""
    boxed = jax.eval_shape(lambda: objective.init(rng.init_key(0)))
    is_box = lambda leaf: isinstance(leaf, meta.AxisMetadata)
    names = lambda leaf: tuple(leaf.names) if is_box(leaf) else (None,) * leaf.ndim
    return meta.unbox(boxed), jax.tree.map(names, boxed, is_leaf=is_box)


def layout(objective: Objective, config: OptimConfig, batch: int, mesh: Mesh, preset: str) -> Layout:
    """Shapes and shardings of the state of `objective` on `mesh`, and the function that creates it there.

    Parameters are drawn leaf by leaf on one device and then placed, so their bits do not depend on the mesh or on XLA's fusions; as one
    program, the draws of bert/base took more than two minutes to compile for a GPU. Raises UserError where a parameter does not divide over
    its mesh axes.
    """
    shapes, names = parameters(objective)
    by_choice = masks.frozen(config.freeze)
    is_frozen = lambda path: path.split("/")[0] in objective.frozen or by_choice(path)
    # The shapes of the moments do not depend on the schedule.
    optimizer = optimizers.build(config, without(shapes, objective.frozen), lr=0.0, warmup=0, steps=1)

    frozen, params = tree.split(shapes, is_frozen)
    count = jax.ShapeDtypeStruct((), jnp.int32)
    moments, carry = jax.eval_shape(optimizer.init, params), jax.eval_shape(lambda: objective.carry(batch))
    state = State(count, count, params, frozen, moments, carry)
    frozen_names, param_names = tree.split(names, is_frozen)
    whole, by_row = partition.replicated(mesh), partition.batch_sharding(mesh)
    moment_names = optimizers.moment_names(optimizer, state.params, param_names)
    shardings = State(
        step=whole,
        skipped=whole,
        params=partition.shardings(state.params, param_names, mesh, preset),
        frozen=partition.shardings(state.frozen, frozen_names, mesh, preset),
        moments=partition.shardings(state.moments, moment_names, mesh, preset),
        carry=jax.tree.map(lambda _: by_row, state.carry),
    )

    def create(key: Array) -> State:
        frozen, params = tree.split(meta.unbox(drawing.draw(objective.init, key)), is_frozen)
        frozen, params = jax.device_put(frozen, shardings.frozen), jax.device_put(params, shardings.params)
        moments = jax.jit(optimizer.init, out_shardings=shardings.moments)(params)
        counts = jax.device_put((np.int32(0), np.int32(0)), whole)
        return State(*counts, params, frozen, moments, zero_carry(objective, batch, mesh))

    return Layout(state, names, shardings, create)


def zero_carry(objective: Objective, batch: int, mesh: Mesh) -> Tree:
    """The carry of the first step, zeros sharded by rows."""
    return jax.jit(lambda: objective.carry(batch), out_shardings=partition.batch_sharding(mesh))()


def adopt(state: State, objective: Objective, batch: int, layout: Layout) -> State:
    """`state` for a phase with another batch or length: a carry of another shape is replaced by zeros, the rest is unchanged."""
    shapes = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    if shapes(state.carry) == shapes(layout.shapes.carry):
        return state
    return dataclasses.replace(state, carry=zero_carry(objective, batch, layout.mesh))
