import dataclasses
import math
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

from jaxenc.errors import UserError
from jaxenc.sharding.mesh import MeshConfig, in_slots, make, platform, sizes, slice_of


@pytest.mark.parametrize(
    "config, expected",
    [
        (MeshConfig(), (8, 1, 1)),
        (MeshConfig(preset="fsdp"), (1, 8, 1)),
        (MeshConfig(preset="fsdp", fsdp=4), (2, 4, 1)),
        (MeshConfig(preset="fsdp_tp"), (1, 4, 2)),
        (MeshConfig(preset="fsdp_tp", tensor=4, fsdp=1), (2, 1, 4)),
        (MeshConfig(preset="fsdp_tp", tensor=2, fsdp=2), (2, 2, 2)),
    ],
)
def test_the_sizes_use_every_device_and_the_axes_are_auto(config: MeshConfig, expected: tuple[int, int, int]) -> None:
    mesh = make(config)
    assert mesh.axis_names == ("data", "fsdp", "tensor")
    assert tuple(mesh.shape.values()) == expected and math.prod(expected) == jax.device_count() == 8
    assert mesh.axis_types == (AxisType.Auto,) * 3


def test_a_mesh_of_some_devices_holds_those() -> None:
    assert list(make(MeshConfig(), jax.devices()[2:5]).devices.flat) == jax.devices()[2:5]


@pytest.mark.parametrize(
    "config, count, words",
    [
        (MeshConfig(preset="zero"), 8, ("mesh.preset", "'zero'", "dp, fsdp, fsdp_tp")),
        (MeshConfig(tensor=2), 8, ("mesh.tensor is 2", "mesh.preset=dp")),
        (MeshConfig(fsdp=4), 8, ("mesh.fsdp is 4", "mesh.preset=dp")),
        (MeshConfig(preset="fsdp", tensor=2), 8, ("mesh.tensor is 2", "mesh.preset=fsdp")),
        (MeshConfig(preset="fsdp", fsdp=3), 8, ("mesh.fsdp is 3", "divisor of 8")),
        (MeshConfig(preset="fsdp_tp", tensor=3), 8, ("mesh.tensor is 3", "8 devices")),
        (MeshConfig(preset="fsdp_tp"), 7, ("mesh.tensor is 2", "7 devices")),
        (MeshConfig(preset="fsdp_tp", tensor=2, fsdp=8), 8, ("mesh.fsdp is 8", "divisor of 4")),
        (MeshConfig(preset="fsdp", fsdp=-1), 8, ("mesh.fsdp is -1",)),
    ],
)
def test_a_mesh_that_cannot_be_is_one_line(config: MeshConfig, count: int, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as error:
        sizes(config, count)
    assert "\n" not in str(error.value) and all(word in str(error.value) for word in words)


@pytest.mark.parametrize("capability, name", [("7.5", "gpu of compute capability 7.5"), ("8.0", "gpu"), ("12.0", "gpu"), ("gfx90a", "gpu")])
def test_the_platform_of_a_gpu_that_is_too_old_for_fused_attention_has_another_name(capability: str, name: str) -> None:
    assert platform(SimpleNamespace(platform="gpu", compute_capability=capability)) == name
    assert platform(jax.devices()[0]) == "cpu"


@dataclasses.dataclass(frozen=True)
class Chip:
    """What a mesh asks of a device. slice_index: None in a topology of one slice, as libtpu describes it."""

    process_index: int
    id: int
    slice_index: int | None = None
    platform: str = "tpu"


# The process of each chip of v5e 4x4, by its number: rows of the torus, 2 x 2 chips a process. And the order of jax.make_mesh there.
PROCESSES = (0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3)
BY_TORUS = (0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12)
CHIPS = tuple(Chip(process, number) for number, process in enumerate(PROCESSES))


def mesh_of(chips: tuple[Chip, ...], shape: tuple[int, int, int]) -> np.ndarray:
    """An array of objects; NumPy would look into them."""
    out = np.empty(len(chips), object)
    out[:] = chips
    return out.reshape(shape)


def rows_by_process(devices: np.ndarray) -> dict[int, set[int]]:
    """The rows of a batch, one for each group of `tensor` devices, that each process holds."""
    groups = devices.reshape(-1, devices.shape[-1])
    held: dict[int, set[int]] = {}
    for row, group in enumerate(groups):
        for chip in group:
            held.setdefault(chip.process_index, set()).add(row)
    return held


@pytest.mark.parametrize("shape", [(16, 1, 1), (1, 16, 1), (8, 2, 1), (1, 8, 2), (2, 2, 4)])
def test_an_order_that_would_split_a_process_gives_way_to_the_processes(shape: tuple[int, int, int]) -> None:
    """Each process holds the rows that it reads: the quarter of its number."""
    found = in_slots(mesh_of(tuple(CHIPS[number] for number in BY_TORUS), shape))
    rows = 16 // shape[2]
    assert rows_by_process(found) == {process: set(range(process * rows // 4, (process + 1) * rows // 4)) for process in range(4)}
    assert sorted(chip.id for chip in found.flat) == list(range(16)) and found.shape == shape


def test_an_order_that_keeps_the_processes_stays() -> None:
    """The ring of v5e 2x2, a host of its own, and a ring within each process."""
    ring = mesh_of(tuple(Chip(0, number) for number in (0, 1, 3, 2)), (1, 4, 1))
    assert in_slots(ring) is ring
    within = mesh_of(tuple(Chip(process, 4 * process + number) for process in range(2) for number in (0, 1, 3, 2)), (8, 1, 1))
    assert in_slots(within) is within


def test_data_goes_across_slices_and_a_slice_keeps_its_fsdp() -> None:
    """Two slices whose processes jax numbers slice by slice; the chips arrive mixed."""
    chips = [Chip(2 * piece + number // 4, 100 * piece + number, piece) for number in range(8) for piece in range(2)]
    assert (
        sizes(MeshConfig("fsdp"), 16, 2) == (2, 8, 1)
        and sizes(MeshConfig("fsdp_tp"), 16, 2) == (2, 4, 2)
        and sizes(MeshConfig(), 16, 2) == (16, 1, 1)
    )
    found = in_slots(mesh_of(tuple(chips), (2, 4, 2)))
    assert [{slice_of(chip) for chip in part.flat} for part in found] == [{0}, {1}]
    with pytest.raises(
        UserError, match="mesh.fsdp is 16, which does not divide the 8 devices .* of a slice; set mesh.fsdp to a divisor of 8"
    ):
        sizes(MeshConfig("fsdp", fsdp=16), 16, 2)


def test_only_tpus_have_slices() -> None:
    """A GPU's `slice_index` counts hosts, and fsdp goes across those."""
    assert [slice_of(Chip(0, 0, 3)), slice_of(Chip(0, 0)), slice_of(Chip(0, 0, 3, "gpu")), slice_of(jax.devices()[0])] == [3, 0, 0, 0]


@pytest.mark.parametrize("shape, chips", [((1, 2, 8), CHIPS), ((3, 1, 1), (Chip(0, 0), Chip(0, 1), Chip(1, 2)))])
def test_devices_that_no_order_gives_the_rows_of_their_process_are_refused(shape: tuple[int, int, int], chips: tuple[Chip, ...]) -> None:
    """A layer's width across two processes, and processes with unequal numbers of devices."""
    with pytest.raises(UserError, match="processes would hold other rows than they read .* keep the devices of a process together"):
        in_slots(mesh_of(chips, shape))
