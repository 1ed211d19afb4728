"""How a call of attention's kernels is split over a mesh: every device computes its own rows and heads."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.sharding import PartitionSpec

from jaxenc.sharding import rules

# Arrays by their axes: [batch, places, heads, d], [batch, heads, ...], [batch, ...] and [heads].
WIDE, NARROW, ROW, HEAD = "wide", "narrow", "row", "head"


@dataclasses.dataclass(frozen=True)
class Split:
    """How a call is split over the mesh. rows, heads: the mesh axes of each; both () on one device."""

    rows: tuple[str, ...]
    heads: tuple[str, ...]

    @staticmethod
    def of(q: Array) -> "Split":
        """For q [batch, length, heads, d]. Rows that do not divide evenly, such as the single row of an initialisation, are computed whole
        on every device, and heads too."""
        sizes = _to_split()

        def axes(name: str, count: int) -> tuple[str, ...]:
            own = tuple(axis for axis in rules.TABLE[name] if sizes.get(axis, 1) > 1)
            parts = 1
            for axis in own:
                parts *= sizes[axis]
            return own if count % parts == 0 else ()

        return Split(axes("batch", q.shape[0]), axes("heads", q.shape[2]))

    def map(self, call: Callable[..., Any], given: tuple[Any, ...], out: tuple[str, ...]) -> Callable[..., Any]:
        """`call` on every device's own part; given, out: the kinds of its arguments, which may be trees, and of its results."""
        sizes = _to_split()
        if all(size == 1 for size in sizes.values()):
            return call
        rows, heads = self.rows or None, self.heads or None
        specs = {
            WIDE: PartitionSpec(rows, None, heads),
            NARROW: PartitionSpec(rows, heads),
            ROW: PartitionSpec(rows),
            HEAD: PartitionSpec(heads),
        }
        ins, outs = jax.tree.map(specs.get, (given, out))
        return jax.shard_map(call, in_specs=ins, out_specs=outs, axis_names=set(sizes), check_vma=False)


def _to_split() -> dict[str, int]:
    """{axis: size} of the mesh, without the axes over which each device already has its own part (`sharding/collectives.py`)."""
    mesh = jax.sharding.get_abstract_mesh()
    return {axis: size for axis, size in mesh.shape.items() if axis not in mesh.manual_axes}
