"""What devices send: from text of every form that XLA prints, and of programs compiled for eight CPU devices."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from jaxenc.hlo.collectives import Collective, by_kind, collectives, group
from jaxenc.hlo.program import read
from tests import tiny

TPU = """HloModule jit_step, is_scheduled=true

%sum (a: f32[], b: f32[]) -> f32[] {
  ROOT %add.1 = f32[] add(%a, %b)
}

%begins (p.1: bf16[32,128]) -> bf16[128,128] {
  %p.1 = bf16[32,128]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %all-gather.46 = bf16[128,128]{1,0:T(8,128)(2,1)} all-gather(%p.1), channel_id=28, replica_groups=mesh['a'=4,'b'=1] {'a'}
  ROOT %custom-call.24 = (bf16[32,128]{1,0}, bf16[128,128]{1,0}) custom-call(%all-gather.46), custom_call_target="AsyncCollectiveStart"
}

%goes_on (p.2: bf16[32,128]) -> bf16[128,128] {
  %p.2 = bf16[32,128]{1,0} parameter(0)
  ROOT %all-gather.48 = bf16[128,128]{1,0} all-gather(%p.2), channel_id=28, replica_groups=mesh['a'=4,'b'=1] {'a'}
}

%all-reduce-scatter.2 (p.3: f32[4096,128]) -> f32[1024,128] {
  %p.3 = f32[4096,128]{1,0} parameter(0)
  %all-reduce.57 = f32[4096,128]{1,0:T(8,128)} all-reduce(%p.3), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%sum
  ROOT %dynamic-slice.191 = f32[1024,128]{1,0} dynamic-slice(%all-reduce.57, %p.3), dynamic_slice_sizes={1024,128}
}

%body (p.4: (s32[], bf16[32,128])) -> (s32[], bf16[32,128]) {
  %p.4 = (s32[], bf16[32,128]{1,0}) parameter(0)
  %fusion.1 = bf16[128,128]{1,0} fusion(%p.4), kind=kCustom, calls=%begins
  %fusion.2 = bf16[128,128]{1,0} fusion(%p.4), kind=kOutput, calls=%goes_on
  ROOT %tuple.1 = (s32[], bf16[32,128]{1,0}) tuple(%p.4, %p.4)
}

%condition (p.5: (s32[], bf16[32,128])) -> pred[] {
  %limit = s32[] constant(24)
  ROOT %lt = pred[] compare(%p.5, %limit), direction=LT
}

ENTRY %main (p: f32[4096,128]) -> f32[1024,128] {
  %p = f32[4096,128]{1,0} parameter(0)
  %while.1 = (s32[], bf16[32,128]{1,0}) while(%p), condition=%condition, body=%body
  %fusion.3 = f32[1024,128]{1,0} fusion(%p), kind=kCustom, calls=%all-reduce-scatter.2
  %send.3 = (f32[128,8,128]{2,1,0}, u32[], token[]) send(%p, %p), frontend_attributes={_xla_megascale_transfer_type="ALL_REDUCE"}
  %send-done.3 = token[] send-done(%send.3), channel_id=9
  %all-reduce-start.1 = (f32[10]{0}, s32[2]{0}) all-reduce-start(%p, %p), channel_id=3, replica_groups=[2,4]<=[8], to_apply=%sum
  %all-reduce-done.1 = (f32[10]{0}, s32[2]{0}) all-reduce-done(%all-reduce-start.1)
  ROOT %all-gather-start.1 = (f32[8]{0}, f32[32]{0}) all-gather-start(%p), channel_id=4, replica_groups={{0,1,2,3},{4,5,6,7}}
}
"""


def test_a_program_of_a_tpu() -> None:
    """A gather spread over two fusions is one, 24 times in a loop; an all-reduce of which each device keeps a part is a reduce-scatter;
    what goes to other slices goes through the host; the ends of asynchronous pairs count nothing, and the result of a gather's start is
    half its operands."""
    found = collectives(read(TPU), 8, 2)
    four = (0, 1, 2, 3)
    assert found == [
        Collective("all-gather", "bf16", 128 * 128 * 2, four, False, 24),
        Collective("reduce-scatter", "f32", 4096 * 128 * 4, four, False, 1),
        Collective("all-reduce", "f32", 128 * 8 * 128 * 4, (0, 1), True, 1),
        Collective("all-reduce", "f32", 48, four, False, 1),
        Collective("all-gather", "f32", 128, four, False, 1),
    ]
    assert list(by_kind(found).items()) == [
        (("reduce-scatter", "f32"), (1, 2_097_152)),
        (("all-gather", "bf16"), (24, 786_432)),
        (("all-reduce between slices", "f32"), (1, 524_288)),
        (("all-gather", "f32"), (1, 128)),
        (("all-reduce", "f32"), (1, 48)),
    ]


def test_what_each_device_sends() -> None:
    """A ring of four and 1,000 bytes, twice: an all-reduce sends each quarter three times, twice; the others once."""
    of = lambda kind, group=(0, 1, 2, 3): Collective(kind, "f32", 1000, group, False, 2).sent
    assert (of("all-reduce"), of("all-gather"), of("reduce-scatter"), of("all-to-all"), of("collective-permute")) == (
        3000,
        1500,
        1500,
        1500,
        2000,
    )
    assert of("all-reduce", (5,)) == 0


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("replica_groups={{0,2},{1,3}}", (0, 2)),
        ("replica_groups={}", tuple(range(8))),
        ("replica_groups=[4,2]<=[8]", (0, 1)),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", (0, 4)),
        ("replica_groups=[2,4]<=[2,2,2]T(1,0,2)", (0, 1, 4, 5)),
        ("replica_groups=mesh['a'=2,'b'=4] {'b'}", (0, 1, 2, 3)),
        ("replica_groups=mesh['a'=2,'b'=4] {'a'}", (0, 4)),
        ("replica_groups=mesh['a'=2,'b'=4] {'a','b'}", tuple(range(8))),
        ("source_target_pairs={{3,4},{4,5}}", (3, 4)),
    ],
)
def test_the_devices_of_a_collective(printed: str, expected: tuple[int, ...]) -> None:
    assert group(f"channel_id=1, {printed}, use_global_device_ids=true", 8) == expected


def test_collectives_of_a_program_on_eight_devices() -> None:
    """Six rounds of a loop, each with one sum over `fsdp` of 16 x 8 float32; before it, one gather of 32 x 4 over all eight devices."""
    mesh = tiny.mesh("fsdp", 8)
    names = ("data", "fsdp", "tensor")

    def local(x: jax.Array, y: jax.Array) -> jax.Array:
        whole = jax.lax.all_gather(y, names, tiled=True)
        total, _ = jax.lax.scan(lambda x, _: (jax.lax.psum(jnp.sin(x), "fsdp"), None), x, length=6)
        return total.sum() + whole.sum() * x

    step = jax.shard_map(local, mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec(names)), out_specs=PartitionSpec(), check_vma=False)
    shape = lambda *axes, over=PartitionSpec(): jax.ShapeDtypeStruct(axes, jnp.float32, sharding=NamedSharding(mesh, over))
    text = jax.jit(step).lower(shape(16, 8), shape(32, 4, over=PartitionSpec(names))).compile().as_text()
    found = by_kind(collectives(read(text), 8))
    assert found == {("all-reduce", "f32"): (6, 6 * 16 * 8 * 4), ("all-gather", "f32"): (1, 32 * 4 * 4)}
