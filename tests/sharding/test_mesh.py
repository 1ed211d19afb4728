import math
from types import SimpleNamespace

import jax
import pytest
from jax.sharding import AxisType

from jaxenc.errors import UserError
from jaxenc.sharding.mesh import MeshConfig, make, platform, sizes


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
