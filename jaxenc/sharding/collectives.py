"""The collectives of a training step: parameters are gathered before they are used, and gradients are summed once.

Left to the compiler, the gradient of a bfloat16 product is summed in bfloat16, a tied table is summed once for each use, fsdp all-reduces
gradients where a reduce-scatter would do, and some sums stay inside the loop over microbatches (all seen in programs compiled for TPUs).
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding

from jaxenc.sharding import rules
from jaxenc.sharding.partition import axes_of, only
from jaxenc.tree import Tree

BATCH = rules.TABLE["batch"]
# A TPU pads the last axis of an array to 128, so an array of narrower parts would take more than twice its memory.
NARROWEST = 64


def batch_axes(mesh: Mesh) -> tuple[str, ...]:
    """The mesh axes of more than one device that split the rows of a batch."""
    return tuple(axis for axis in BATCH if mesh.shape[axis] > 1)


def on_own_rows(function: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """`function`, applied by each device to its own part of the arguments: between the parts of a batch only `gathered`, `summed` and
    `all_summed` communicate.

    in_specs, out_specs: as in jax.shard_map, over the axes of the batch; the compiler still splits the other axes. On a mesh that does not
    split the batch it is `function` itself.
    """
    if not batch_axes(mesh):
        return function
    # An axis of one device is manual too, so that the compiler has nothing left to split.
    manual = {axis for axis in mesh.axis_names if axis in BATCH or mesh.shape[axis] == 1}
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=manual, check_vma=False)


def own_specs(stored: Tree) -> Tree:
    """The specs, for `on_own_rows`, of parameters that are stored as `stored`, a tree of NamedSharding."""
    return jax.tree.map(lambda sharding: only(sharding, BATCH), stored)


def gathered(params: Tree, stored: Tree) -> Tree:
    """Parameters, whole over the axes of the batch, from each device's part. stored: the NamedSharding of each."""

    def one(leaf: jax.Array, sharding: NamedSharding) -> jax.Array:
        for dim, axes in _splits(sharding):
            leaf = _gather(leaf, axes, dim, _size(sharding.mesh, axes))
        return leaf

    return _on_own_width(lambda params: jax.tree.map(one, params, stored), stored)(params)


def summed(gradients: Tree, stored: Tree) -> Tree:
    """The sum over all devices of their whole gradients, in their dtype; each device gets its part. stored: as in `gathered`.

    A gradient that `fsdp` splits is reduce-scattered over it, and the part is then summed over the other axes. Each leaf is a collective of
    its own, so that the first can run while the backward pass computes the last.
    """

    def one(leaf: jax.Array, sharding: NamedSharding) -> jax.Array:
        left = batch_axes(sharding.mesh)
        for dim, axes in _splits(sharding):
            leaf = _scatter(leaf, axes, dim, _size(sharding.mesh, axes))
            left = tuple(axis for axis in left if axis not in axes)
        return jax.lax.psum(leaf, left) if left else leaf

    return _on_own_width(lambda gradients: jax.tree.map(one, gradients, stored), stored)(gradients)


def all_summed(sums: Tree, mesh: Mesh) -> Tree:
    """Sums over the rows of a device, summed over all devices, each in its dtype."""
    axes = batch_axes(mesh)
    return jax.tree.map(lambda leaf: jax.lax.psum(leaf, axes).astype(leaf.dtype), sums) if axes else sums


def _gather(leaf: jax.Array, axes: tuple[str, ...], dim: int, parts: int) -> jax.Array:
    """The whole array, from the `parts` parts along dimension `dim` that the devices of `axes` have, one each."""
    if not _by_whole_parts(dim, leaf.shape[dim]):
        return jax.lax.all_gather(leaf, axes, axis=dim, tiled=True)
    whole = (*leaf.shape[:dim], parts * leaf.shape[dim], *leaf.shape[dim + 1 :])
    return jnp.moveaxis(jax.lax.all_gather(leaf, axes), 0, dim).reshape(whole)


def _scatter(leaf: jax.Array, axes: tuple[str, ...], dim: int, parts: int) -> jax.Array:
    """This device's part of dimension `dim` of the sum of `leaf` over the devices of `axes`."""
    size = leaf.shape[dim] // parts
    if not _by_whole_parts(dim, size):
        return jax.lax.psum_scatter(leaf, axes, scatter_dimension=dim, tiled=True)
    split = leaf.reshape(*leaf.shape[:dim], parts, size, *leaf.shape[dim + 1 :])
    return jax.lax.psum_scatter(jnp.moveaxis(split, dim, 0), axes)


def _by_whole_parts(dim: int, size: int) -> bool:
    """Whether a collective along `dim` sends whole parts, [parts, ...], where each has this size in `dim`. A GPU's collectives take the
    outermost axis in memory: along another axis XLA would keep the whole array transposed, and its moments in the optimizer too. For the
    gradient of a token table that is a scatter of columns, 3.2 ms on two H200 instead of 0.6 for rows (docs/benchmarks.md, Several
    GPUs)."""
    return dim > 0 and size >= NARROWEST


def _size(mesh: Mesh, axes: tuple[str, ...]) -> int:
    return math.prod(mesh.shape[axis] for axis in axes)


def _splits(sharding: NamedSharding) -> list[tuple[int, tuple[str, ...]]]:
    """(dimension, those axes of the batch that split it) of an array."""
    axes = batch_axes(sharding.mesh)
    return [(dim, own) for dim, names in enumerate(axes_of(sharding)) if (own := tuple(name for name in names if name in axes))]


def _on_own_width(function: Callable[[Tree], Tree], stored: Tree) -> Callable[[Tree], Tree]:
    """`function` of each device's own part of a layer's width, for use inside `on_own_rows`: the compiler would otherwise gather an array
    over the axes that it splits itself before a collective over the others."""
    held = jax.tree.leaves(stored)
    mesh = held[0].mesh if held else None
    if mesh is None or not batch_axes(mesh):
        return function
    others = {axis for axis in mesh.axis_names if axis not in BATCH and mesh.shape[axis] > 1}
    if not others:
        return function
    specs = jax.tree.map(lambda sharding: only(sharding, others), stored)
    return jax.shard_map(function, in_specs=(specs,), out_specs=specs, axis_names=others, check_vma=False)
