"""The state of a run: where its parts lie, what it starts from."""

import dataclasses

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding.mesh import MeshConfig, make
from jaxenc.training.state import Layout, layout
from tests import tiny
from tests.selection import FULL

MODEL = dataclasses.replace(tiny.MODEL, layers=1)


def lay_out(preset: str, devices: int, optim: OptimConfig = OptimConfig()) -> Layout:
    where = tiny.mesh(preset, devices)
    with jax.set_mesh(where):
        return layout(tiny.objective(model=MODEL), optim, tiny.ROWS, where, preset)


@pytest.mark.parametrize(
    "preset, table, kernel, output",
    [
        ("dp", P(None, None), P(None, None), P(None, None)),
        ("fsdp", P(None, "fsdp"), P("fsdp", None), P(None, "fsdp")),
        ("fsdp_tp", P("tensor", "fsdp"), P("fsdp", "tensor"), P("tensor", "fsdp")),
    ],
)
def test_parameters_and_their_moments_lie_where_the_preset_says(preset: str, table: P, kernel: P, output: P) -> None:
    shardings = lay_out(preset, 8).shardings
    for branch in (shardings.params, shardings.moments["adam"].mu, shardings.moments["adam"].nu):
        leaves = dict(tree.leaves(branch))
        assert leaves["embeddings/token/table"].spec == table
        assert leaves["encoder/layer_00/attention/query/kernel"].spec == kernel
        assert leaves["encoder/layer_00/feed_forward/up/kernel"].spec == kernel
        assert leaves["encoder/layer_00/attention/output/kernel"].spec == output
        assert leaves["encoder/layer_00/attention/norm/scale"].spec == P(None)
    assert shardings.step.spec == shardings.skipped.spec == shardings.moments["adam"].count.spec == P()


def test_parameters_are_the_same_on_any_mesh_and_plain_dicts() -> None:
    """Bitwise on 1 device and on 8 under a preset that splits every axis, with --full under each; no box is left, and only dicts and
    arrays."""
    states = []
    for preset, devices in (("dp", 1), ("fsdp_tp", 8), *((("dp", 8), ("fsdp", 8)) if FULL else ())):
        with jax.set_mesh(tiny.mesh(preset, devices)):
            states.append(lay_out(preset, devices).create(rng.init_key(0)))
    for state in states[1:]:
        tiny.assert_bitwise(jax.device_get(state), jax.device_get(states[0]))

    def check(node: object) -> None:
        assert type(node) is dict or isinstance(node, jax.Array)
        for child in node.values() if type(node) is dict else ():
            check(child)

    check(states[0].params)
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(states[0].params))


def test_under_fsdp_each_device_holds_its_share() -> None:
    """Bytes of parameters and moments on one of 8 devices: an eighth of what is split, all of what is not."""
    with jax.set_mesh(tiny.mesh("fsdp", 8)):
        state = lay_out("fsdp", 8).create(rng.init_key(0))
    for path, leaf in tree.leaves(state.params):
        split = any(leaf.sharding.spec)
        assert leaf.addressable_shards[3].data.size == leaf.size // (8 if split else 1), path


def test_another_seed_gives_other_parameters_and_the_same_shapes() -> None:
    where = tiny.mesh("dp", 1)
    with jax.set_mesh(where):
        first, second = (layout(tiny.objective(model=MODEL), OptimConfig(), 4, where, "dp").create(rng.init_key(seed)) for seed in (0, 1))
    tables = [state.params["embeddings"]["token"]["table"] for state in (first, second)]
    assert tables[0].shape == tables[1].shape and (tables[0][:200] != tables[1][:200]).mean() > 0.99


def test_a_width_that_tensor_does_not_divide_names_the_parameter() -> None:
    where = make(MeshConfig("fsdp_tp", tensor=3), jax.devices()[:3])
    with jax.set_mesh(where), pytest.raises(UserError, match="(heads|mlp|vocab).*cannot be split in 3 .*or mesh.preset to fsdp or dp"):
        layout(tiny.objective(), OptimConfig(), 3, where, "fsdp_tp")
