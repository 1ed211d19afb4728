"""Parameters from their parts and parts of summed gradients, along any dimension, against plain arrays."""

import re

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxenc.sharding.collectives import NARROWEST, gathered, on_own_rows, own_specs, summed
from jaxenc.sharding.mesh import MeshConfig, make

PLACES = {
    "rows": ((8, 6), P("fsdp", None)),
    "wide": ((6, 8 * NARROWEST), P(None, "fsdp")),
    "narrow": ((6, 8), P(None, "fsdp")),
    "middle": ((3, 8 * NARROWEST, 5), P(None, "fsdp", None)),
    "both": ((4, 8 * NARROWEST), P("tensor", "fsdp")),
    "whole": ((5,), P()),
}


def stored(mesh: Mesh) -> dict[str, NamedSharding]:
    return {name: NamedSharding(mesh, spec) for name, (_, spec) in PLACES.items()}


def values(mesh: Mesh) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Small whole numbers, whose sums are exact, and one factor for each device that has rows of its own."""
    draw = np.random.default_rng(0)
    params = {name: draw.integers(-8, 8, shape).astype(np.float32) for name, (shape, _) in PLACES.items()}
    return params, np.arange(1, 1 + mesh.shape["data"] * mesh.shape["fsdp"], dtype=np.float32)


def there_and_back(mesh: Mesh):
    """The summed gradients of a loss of every device's own factor times all whole parameters; and the whole parameters."""
    places = stored(mesh)

    def work(params, factor):
        whole = gathered(params, places)
        return summed(jax.tree.map(lambda leaf: leaf * factor[0], whole), places), whole

    specs, batch = own_specs(places), P(("data", "fsdp"))
    whole = {name: P() for name in places}
    return jax.jit(on_own_rows(work, mesh, (specs, batch), (specs, whole)), in_shardings=(places, NamedSharding(mesh, batch)))


@pytest.mark.parametrize("config", [MeshConfig(preset="fsdp"), MeshConfig(preset="fsdp", fsdp=4), MeshConfig("fsdp_tp", tensor=2, fsdp=2)])
def test_every_part_is_where_it_was(config: MeshConfig) -> None:
    mesh = make(config)
    params, factors = values(mesh)
    with jax.set_mesh(mesh):
        sums, whole = there_and_back(mesh)(params, factors)
    for name, leaf in params.items():
        np.testing.assert_array_equal(whole[name], leaf, name)
        np.testing.assert_array_equal(sums[name], leaf * factors.sum(), name)


def test_wide_parts_are_sent_whole_and_narrow_ones_along_their_width() -> None:
    """Along the outermost axis, so that XLA transposes no array for a GPU; narrow parts would be padded on a TPU."""
    mesh = make(MeshConfig(preset="fsdp"))
    with jax.set_mesh(mesh):
        text = there_and_back(mesh).lower(*values(mesh)).as_text()
    sent = re.findall(r'stablehlo\.(?:all_gather"[^\n]*all_gather|reduce_scatter"[^\n]*scatter)_dim(?:ension)? = (\d)', text)
    # rows, wide, narrow, middle, both; then whole has nothing to scatter.
    assert sorted(sent) == ["0"] * 8 + ["1"] * 2, text
