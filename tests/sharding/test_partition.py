import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from jaxenc.errors import UserError
from jaxenc.sharding.mesh import MeshConfig, make
from jaxenc.sharding.partition import batch_sharding, check_rows, place, replicated, shardings, whole_over_fsdp

MESHES = [MeshConfig(), MeshConfig(preset="fsdp"), MeshConfig(preset="fsdp_tp", tensor=2, fsdp=2), MeshConfig(preset="fsdp_tp", tensor=4)]
NAMES = {"table": ("vocab", "table_embed"), "layer_00": {"kernel": ("embed", "mlp"), "bias": ("mlp",), "scale": ("norm",)}, "count": ()}
SHAPES = {"table": (256, 16), "layer_00": {"kernel": (8, 16), "bias": (16,), "scale": (3,)}, "count": ()}


def tree_of(shapes: dict) -> dict:
    return {k: tree_of(v) if isinstance(v, dict) else jax.ShapeDtypeStruct(v, jnp.float32) for k, v in shapes.items()}


@pytest.fixture(params=MESHES, ids=lambda config: f"{config.preset}-{config.tensor}")
def mesh(request: pytest.FixtureRequest) -> Mesh:
    return make(request.param)


@pytest.mark.parametrize("config", MESHES, ids=lambda config: f"{config.preset}-{config.tensor}")
def test_an_initialisation_compiles_to_the_shardings(config: MeshConfig) -> None:
    mesh, shapes = make(config), tree_of(SHAPES)
    out = shardings(shapes, NAMES, mesh, config.preset)
    arrays = jax.jit(lambda: jax.tree.map(lambda s: jnp.ones(s.shape, s.dtype), shapes), out_shardings=out)()
    fsdp, tensor = mesh.shape["fsdp"], mesh.shape["tensor"]
    held = jax.tree.map(lambda a: a.addressable_shards[0].data.shape, arrays)
    assert held == {
        "table": (256 // tensor, 16 // fsdp),
        "layer_00": {"kernel": (8 // fsdp, 16 // tensor), "bias": (16 // tensor,), "scale": (3,)},
        "count": (),
    }


def test_an_axis_that_fsdp_does_not_divide_stays_whole_and_is_counted() -> None:
    """The other axes, and the other arrays, are split as ever."""
    mesh, shapes = make(MeshConfig("fsdp_tp", tensor=2, fsdp=4)), tree_of({**SHAPES, "table": (256, 6)})
    held = shardings(shapes, NAMES, mesh, "fsdp_tp")
    assert held["table"].spec == P("tensor", None) and held["layer_00"]["kernel"].spec == P("fsdp", "tensor")
    assert whole_over_fsdp(shapes, NAMES, mesh, "fsdp_tp") == [shapes["table"]]
    assert whole_over_fsdp(tree_of(SHAPES), NAMES, mesh, "fsdp_tp") == []


def test_an_axis_that_tensor_does_not_divide_names_the_parameter() -> None:
    shapes = tree_of({**SHAPES, "layer_00": {"kernel": (8, 15), "bias": (16,), "scale": (3,)}})
    with pytest.raises(UserError, match=r"layer_00/kernel: its axis 'mlp' of size 15 .* 4 \(tensor 4\)"):
        shardings(shapes, NAMES, make(MESHES[-1]), "fsdp_tp")
    assert shardings(shapes, NAMES, make(MESHES[0]), "dp")["layer_00"]["kernel"].spec == P(None, None)


@pytest.mark.parametrize("names", [("embed",), ("embed", "mlp", None)])
def test_another_number_of_axes_than_names_is_an_error(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="a/kernel has the shape"):
        shardings(tree_of({"a": {"kernel": (8, 16)}}), {"a": {"kernel": names}}, make(MESHES[0]), "dp")


def test_place_keeps_the_order_of_rows_and_splits_them_over_data_and_fsdp(mesh: Mesh) -> None:
    batch = {"tokens": np.arange(48, dtype=np.int32).reshape(16, 3), "index": np.arange(16, dtype=np.uint32)}
    placed = place(batch, mesh)
    parts = mesh.shape["data"] * mesh.shape["fsdp"]
    for name, array in batch.items():
        assert placed[name].dtype == array.dtype and placed[name].sharding == batch_sharding(mesh)
        assert placed[name].addressable_shards[0].data.shape[0] == 16 // parts
        np.testing.assert_array_equal(np.asarray(placed[name]), array)


def test_a_batch_that_the_devices_cannot_share_names_the_field() -> None:
    with pytest.raises(UserError, match="train.batch: 12 rows .* 8 devices"):
        place({"index": np.arange(12)}, make(MESHES[0]))


def test_replicated_is_whole_on_every_device(mesh: Mesh) -> None:
    array = jax.device_put(np.arange(5), replicated(mesh))
    assert len(array.addressable_shards) == 8 and all(s.data.shape == (5,) for s in array.addressable_shards)


@pytest.mark.parametrize("rows, parts", [(8, 1), (16, 2), (12, 1), (8, 2), (24, 2), (48, 3)])
def test_the_devices_share_every_microbatch_evenly(rows: int, parts: int, mesh: Mesh) -> None:
    """By counting: the rows of each part, dealt out one by one, are as many for every device that holds rows of its own."""
    devices = mesh.shape["data"] * mesh.shape["fsdp"]
    dealt = [[len(range(part, rows, parts)[device::devices]) for device in range(devices)] for part in range(parts)]
    if len({count for part in dealt for count in part}) == 1:
        check_rows(rows, parts, mesh)
    else:
        with pytest.raises(UserError, match=rf"train.batch: {rows} rows.* over {devices} devices .* a multiple of {parts * devices}"):
            check_rows(rows, parts, mesh)
