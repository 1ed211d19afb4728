"""One table from the logical axis names of parameters and batches to the axes of the device mesh."""

from jax.sharding import PartitionSpec

AXES = ("data", "fsdp", "tensor")

# The mesh axes that a preset splits over; the others have size 1.
PRESETS = {"dp": ("data",), "fsdp": ("data", "fsdp"), "fsdp_tp": AXES}

# `embed` is the model's width in a matrix, `norm` the same width in a vector that stays whole (LayerNorm, output biases).
# `table_embed` is the width of an embedding table: `fsdp` splits it there, because the rows of a vocabulary, a multiple of 128, do not
# divide over 256 devices and most widths do. The table is gathered over `fsdp` before it is read, so no look-up pays for that.
TABLE = {
    "batch": ("data", "fsdp"),
    "length": (),
    "vocab": ("tensor",),
    "table_embed": ("fsdp",),
    "embed": ("fsdp",),
    "mlp": ("tensor",),
    "heads": ("tensor",),
    "norm": (),
}


def mesh_axes(name: str | None, preset: str) -> tuple[str, ...]:
    """The mesh axes that the logical axis `name` is split over, outermost first; () for None and for an axis that stays whole."""
    return () if name is None else tuple(axis for axis in TABLE[name] if axis in PRESETS[preset])


def spec(names: tuple[str | None, ...], preset: str) -> PartitionSpec:
    """The PartitionSpec of an array whose axes have these logical names; None is an axis that no mesh axis splits.

    Raises ValueError for a name that the table does not list and for two axes of the array on one mesh axis. Both hold for every
    preset, so a model that runs under `dp` also runs under the others.
    """
    unknown = [name for name in names if name is not None and name not in TABLE]
    if unknown:
        raise ValueError(f"logical axes {names}: {unknown[0]!r} is not one of {', '.join(TABLE)}")
    used = [axis for name in names for axis in mesh_axes(name, "fsdp_tp")]
    twice = [axis for axis in AXES if used.count(axis) > 1]
    if twice:
        raise ValueError(f"logical axes {names}: two of them are split over the mesh axis {twice[0]!r}")
    return PartitionSpec(*(mesh_axes(name, preset) or None for name in names))
