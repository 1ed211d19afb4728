"""Shardings of parameters, optimizer state and batches on a mesh, and the way of host arrays onto it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxenc.errors import UserError
from jaxenc.sharding import rules
from jaxenc.tree import Tree


def shardings(shapes: Tree, names: Tree, mesh: Mesh, preset: str) -> Tree:
    """A tree of NamedSharding with the structure of `shapes`, any tree of arrays or ShapeDtypeStructs.

    names: the same tree with a tuple of logical axis names instead of each array, () for a scalar.
    An axis that `fsdp` does not divide stays whole over it, which costs memory only (`whole_over_fsdp` lists such arrays). Raises
    UserError, with the parameter's path, when `tensor` does not divide an axis; ValueError when an array has another number of axes than
    names, or as `rules.spec` does.
    """

    def one(path: tuple, leaf: Any, axes: tuple[str | None, ...]) -> NamedSharding:
        where = jax.tree_util.keystr(path, simple=True, separator="/")
        if len(axes) != len(leaf.shape):
            raise ValueError(f"{where} has the shape {leaf.shape} and the logical axes {axes}")
        for name, size in zip(axes, leaf.shape, strict=True):
            _check_divides(where, name, size, mesh, preset)
        return NamedSharding(mesh, _dividing(rules.spec(axes, preset), leaf.shape, mesh))

    return jax.tree_util.tree_map_with_path(one, shapes, names)


def _check_divides(where: str, name: str | None, size: int, mesh: Mesh, preset: str) -> None:
    parts = mesh.shape["tensor"] if "tensor" in rules.mesh_axes(name, preset) else 1
    if size % parts:
        advice = "set mesh.tensor to a number that divides it, or mesh.preset to fsdp or dp, which split no layer's width"
        raise UserError(f"its axis {name!r} of size {size} cannot be split in {parts} (tensor {parts})", where, advice)


def _dividing(spec: PartitionSpec, shape: tuple[int, ...], mesh: Mesh) -> PartitionSpec:
    """`spec` without `fsdp` where it does not divide the array's axis."""
    stays = lambda axes, size: "fsdp" in (axes or ()) and size % mesh.shape["fsdp"]
    return PartitionSpec(*(None if stays(axes, size) else axes for axes, size in zip(spec, shape, strict=True)))


def whole_over_fsdp(shapes: Tree, names: Tree, mesh: Mesh, preset: str) -> list[Any]:
    """The arrays of `shapes` that the preset would split over `fsdp` and that stay whole, since it does not divide them."""
    held = shardings(shapes, names, mesh, preset)
    leaves = jax.tree.leaves(shapes)
    wanted = [rules.spec(axes, preset) for axes in jax.tree.leaves(names, is_leaf=lambda leaf: isinstance(leaf, tuple))]
    return [leaf for leaf, one, spec in zip(leaves, jax.tree.leaves(held), wanted, strict=True) if one.spec != spec]


def replicated(mesh: Mesh) -> NamedSharding:
    """The sharding of a value that every device holds whole."""
    return NamedSharding(mesh, PartitionSpec())


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """The sharding of any array whose leading axis is the rows of the batch."""
    return NamedSharding(mesh, PartitionSpec(rules.TABLE["batch"]))


def gather(params: Tree, stored: Tree) -> Tree:
    """Parameters as a layer multiplies by them: whole over the mesh axes that split the batch, still split over the others.

    stored: the NamedSharding of each. An axis cannot split the rows and a kernel in one product; left to choose, the compiler splits
    the activations' width and moves the batch. The gradient of what comes back is summed into the shards of `stored`.
    """
    held = jax.lax.with_sharding_constraint(params, stored)
    others = [axis for axis in rules.AXES if axis not in rules.TABLE["batch"]]
    return jax.lax.with_sharding_constraint(held, jax.tree.map(lambda one: NamedSharding(one.mesh, only(one, others)), stored))


def only(sharding: NamedSharding, axes: Collection[str]) -> PartitionSpec:
    """The spec of a sharding, reduced to the mesh axes in `axes`."""
    return PartitionSpec(*(tuple(name for name in names if name in axes) or None for names in axes_of(sharding)))


def axes_of(sharding: NamedSharding) -> list[tuple[str, ...]]:
    """For each axis of an array the mesh axes that split it, () for none."""
    return [(axes,) if isinstance(axes, str) else axes or () for axes in sharding.spec]


def by_rows(function: Callable[..., Tree], mesh: Mesh) -> Callable[..., Tree]:
    """`function` of trees of arrays [rows, ...] run on every device's own rows: no row moves, whatever the function does.

    `function` treats each row alone. Left to the compiler, a top-k over the rows' scores gathers all of them.
    """
    spec = PartitionSpec(rules.TABLE["batch"])
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec)


def check_rows(rows: int, parts: int, mesh: Mesh) -> None:
    """Raises UserError unless the devices share every one of the `parts` microbatches of `rows` rows evenly: else rows would move."""
    devices = mesh.shape["data"] * mesh.shape["fsdp"]
    if rows % (parts * devices):
        apart = f" in {parts} microbatches" if parts > 1 else ""
        raise UserError(
            f"{rows} rows{apart} cannot be split over {devices} devices (data {mesh.shape['data']} x fsdp {mesh.shape['fsdp']})",
            "train.batch",
            f"set it to a multiple of {parts * devices}{' or train.microbatches to less' if parts > 1 else ''}",
        )


def place(batch: Mapping[str, np.ndarray], mesh: Mesh) -> dict[str, jax.Array]:
    """Global arrays, split by rows, from the rows that this process read: its `process_slots` of the global batch.

    Each array is [rows of this process, ...] and becomes [rows of all processes, ...]. Raises UserError when the devices cannot
    share the global batch evenly. mesh: of `mesh.make`, which gives each process its slots.
    """
    sharding, count = batch_sharding(mesh), jax.process_count()
    for rows in {len(array) for array in batch.values()}:
        check_rows(rows * count, 1, mesh)
    if count == 1:
        # One call for all fields: each array that is placed by itself costs 0.3 ms, more than a step of a small model leaves.
        return jax.device_put(dict(batch), sharding)
    whole = lambda array: (len(array) * count, *array.shape[1:])
    return {name: jax.make_array_from_process_local_data(sharding, array, whole(array)) for name, array in batch.items()}


def all_rows(batch: Mapping[str, np.ndarray], mesh: Mesh) -> Mapping[str, np.ndarray]:
    """The rows [batch, ...] that all processes read, in slot order, from those of this one [batch / processes, ...], by name, on the host.

    A collective: every process calls it at the same point of its run.
    """
    if jax.process_count() == 1:
        return batch
    return jax.device_get(jax.device_put(place(batch, mesh), replicated(mesh)))


def process_slots(batch: int, count: int, index: int) -> slice:
    """The slots of a global batch of `batch` rows that process `index` of `count` reads.

    The processes' slices are contiguous, disjoint, of one size, and cover the batch in the order of their index. Raises UserError
    when `count` does not divide `batch`, ValueError for an index outside [0, count).
    """
    if not 0 <= index < count:
        raise ValueError(f"process {index} of {count}")
    if batch % count:
        raise UserError(f"train.batch is {batch}, which {count} processes cannot share", fix=f"set it to a multiple of {count}")
    rows = batch // count
    return slice(index * rows, (index + 1) * rows)
