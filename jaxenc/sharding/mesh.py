"""The device mesh: how many devices share the batch, the parameters and the width of a layer."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh

from jaxenc.errors import UserError
from jaxenc.sharding.rules import AXES, PRESETS


@dataclasses.dataclass(frozen=True)
class MeshConfig:
    """How devices share the batch, the parameters and the width of a layer.

    preset: `dp` copies the parameters to every device, `fsdp` splits them too, `fsdp_tp` also splits each layer's width.
    tensor: devices that share one layer's width; 0 = 2 under fsdp_tp, 1 otherwise.
    fsdp: devices that share one copy of the parameters; 0 = all that `tensor` leaves, or 1 under dp. The rest go to `data`. Over several
        slices of TPUs both stay within a slice, and `data` goes across.
    """

    preset: str = "dp"
    tensor: int = 0
    fsdp: int = 0


def sizes(config: MeshConfig, count: int, slices: int = 1) -> tuple[int, int, int]:
    """The sizes (data, fsdp, tensor) of a mesh of `count` devices in `slices` slices of one size.

    Raises UserError for an unknown preset, a size that the preset does not use and sizes that do not divide the devices of a slice.
    """
    if config.preset not in PRESETS:
        raise UserError(f"mesh.preset is {config.preset!r}", fix=f"use {', '.join(PRESETS)}")
    used = PRESETS[config.preset]
    for name, size in (("tensor", config.tensor), ("fsdp", config.fsdp)):
        if size > 1 and name not in used:
            raise UserError(f"mesh.{name} is {size}, and mesh.preset={config.preset} does not split over it", fix=f"set mesh.{name}=0")
    tensor = config.tensor or (2 if "tensor" in used else 1)
    own, of_slice = count // slices, " of a slice" if slices > 1 else ""
    if tensor < 1 or own % tensor:
        raise UserError(
            f"mesh.tensor is {tensor}, which does not divide the {own} devices{of_slice}", fix=f"set mesh.tensor to a divisor of {own}"
        )
    left = own // tensor
    fsdp = config.fsdp or (left if "fsdp" in used else 1)
    if fsdp < 1 or left % fsdp:
        raise UserError(
            f"mesh.fsdp is {fsdp}, which does not divide the {left} devices that mesh.tensor {tensor} leaves of {own}{of_slice}",
            fix=f"set mesh.fsdp to a divisor of {left}",
        )
    return slices * left // fsdp, fsdp, tensor


def make(config: MeshConfig, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """A mesh with the axes data, fsdp, tensor over `devices` (all of every process where None), for `jax.set_mesh`.

    The devices of a slice are in the order of its torus where each process then holds the rows that it reads, and else as `in_slots` says.
    The axis types are Auto: the compiler places what the step's argument shardings leave open. Raises as `sizes` and `in_slots` do.
    """
    devices = jax.devices() if devices is None else devices
    slices = [[one for one in devices if slice_of(one) == number] for number in sorted({slice_of(one) for one in devices})]
    data, fsdp, tensor = sizes(config, len(devices), len(slices))
    parts = [_by_torus((data // len(slices), fsdp, tensor), own) for own in slices]
    return Mesh(in_slots(np.concatenate(parts)), AXES, axis_types=(AxisType.Auto,) * len(AXES))


def _by_torus(shape: tuple[int, int, int], devices: Sequence[jax.Device]) -> np.ndarray:
    """The devices of a slice in this shape, in the order that jax gives them on their torus, or as they are where jax has none."""
    try:
        return jax.make_mesh(shape, AXES, (AxisType.Auto,) * len(AXES), devices=devices).devices
    except NotImplementedError:
        return np.array(devices).reshape(shape)


def slice_of(device: jax.Device) -> int:
    """The number of the slice of TPUs that a device is in; 0 on every other platform, where jax gives other things the same name."""
    return (getattr(device, "slice_index", 0) or 0) if device.platform == "tpu" else 0


def in_slots(devices: np.ndarray) -> np.ndarray:
    """The devices [data, fsdp, tensor] of a mesh, in an order in which each process holds the rows of its slots (`process_slots`).

    They stay as they are where that order is one; else they are sorted by slice, process and number. Raises UserError where that is none
    either: where a group of `tensor` devices spans processes, for example.
    """
    by_process = sorted(devices.flat, key=lambda device: (slice_of(device), device.process_index, device.id))
    for order in (devices, np.array(by_process, devices.dtype).reshape(devices.shape)):
        if _keeps_slots(order):
            return order
    count, shape = len({device.process_index for device in devices.flat}), " x ".join(map(str, devices.shape))
    raise UserError(
        f"{count} processes would hold other rows than they read on a mesh of data x fsdp x tensor {shape}",
        "mesh",
        "choose mesh sizes that keep the devices of a process together",
    )


def _keeps_slots(devices: np.ndarray) -> bool:
    """Whether each process holds one contiguous part of the rows, all of one size, in the order of the processes."""
    groups = devices.reshape(-1, devices.shape[-1])
    processes = sorted({device.process_index for device in devices.flat})
    each, left = divmod(len(groups), len(processes))
    wanted = [processes[number // each] for number in range(len(groups))] if each and not left else []
    return wanted == [own.pop() if len(own := {device.process_index for device in group}) == 1 else None for group in groups]


def abstract(config: MeshConfig, count: int) -> AbstractMesh:
    """As `make`, of `count` devices that this machine need not have: for shapes and shardings only."""
    return AbstractMesh(sizes(config, count), AXES, (AxisType.Auto,) * len(AXES))


def platform(device: jax.Device) -> str:
    """The platform of a device: `cpu`, `gpu` or `tpu`. A GPU before compute capability 8.0 (Ampere) has a longer name, since neither
    cuDNN's attention nor Triton runs on it."""
    capability = getattr(device, "compute_capability", "")
    old = device.platform == "gpu" and capability.partition(".")[0].isdigit() and float(capability) < 8
    return f"{device.platform} of compute capability {capability}" if old else device.platform
