"""The device mesh: how many devices share the batch, the parameters and the width of a layer."""

import dataclasses
from collections.abc import Sequence

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh

from jaxenc.errors import UserError
from jaxenc.sharding.rules import AXES, PRESETS


@dataclasses.dataclass(frozen=True)
class MeshConfig:
    """How devices share the batch, the parameters and the width of a layer.

    preset: `dp` copies the parameters to every device, `fsdp` splits them too, `fsdp_tp` also splits each layer's width.
    tensor: devices that share one layer's width; 0 = 2 under fsdp_tp, 1 otherwise.
    fsdp: devices that share one copy of the parameters; 0 = all that `tensor` leaves, or 1 under dp. The rest go to `data`.
    """

    preset: str = "dp"
    tensor: int = 0
    fsdp: int = 0


def sizes(config: MeshConfig, count: int) -> tuple[int, int, int]:
    """The sizes (data, fsdp, tensor) of a mesh of `count` devices.

    Raises UserError for an unknown preset, a size that the preset does not use and sizes that do not divide `count`.
    """
    if config.preset not in PRESETS:
        raise UserError(f"mesh.preset is {config.preset!r}", fix=f"use {', '.join(PRESETS)}")
    used = PRESETS[config.preset]
    for name, size in (("tensor", config.tensor), ("fsdp", config.fsdp)):
        if size > 1 and name not in used:
            raise UserError(f"mesh.{name} is {size}, and mesh.preset={config.preset} does not split over it", fix=f"set mesh.{name}=0")
    tensor = config.tensor or (2 if "tensor" in used else 1)
    if tensor < 1 or count % tensor:
        raise UserError(
            f"mesh.tensor is {tensor}, which does not divide the {count} devices", fix=f"set mesh.tensor to a divisor of {count}"
        )
    left = count // tensor
    fsdp = config.fsdp or (left if "fsdp" in used else 1)
    if fsdp < 1 or left % fsdp:
        raise UserError(
            f"mesh.fsdp is {fsdp}, which does not divide the {left} devices that mesh.tensor {tensor} leaves of {count}",
            fix=f"set mesh.fsdp to a divisor of {left}",
        )
    return left // fsdp, fsdp, tensor


def make(config: MeshConfig, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A mesh with the axes data, fsdp, tensor over `devices` (all of every process where None), for `jax.set_mesh`.

    The axis types are Auto: the compiler places what the step's argument shardings leave open. Raises as `sizes` does.
    """
    devices = jax.devices() if devices is None else devices
    return jax.make_mesh(sizes(config, len(devices)), AXES, (AxisType.Auto,) * len(AXES), devices=devices)


def abstract(config: MeshConfig, count: int) -> AbstractMesh:
    """As `make`, of `count` devices that this machine need not have: for shapes and shardings only."""
    return AbstractMesh(sizes(config, count), AXES, (AxisType.Auto,) * len(AXES))


def platform(device: jax.Device) -> str:
    """The platform of a device: `cpu`, `gpu` or `tpu`. A GPU before compute capability 8.0 (Ampere) has a longer name, since neither
    cuDNN's attention nor Triton runs on it."""
    capability = getattr(device, "compute_capability", "")
    old = device.platform == "gpu" and capability.partition(".")[0].isdigit() and float(capability) < 8
    return f"{device.platform} of compute capability {capability}" if old else device.platform
