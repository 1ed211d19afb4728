"""FLOPs and bytes of compiled programs: by hand, and as XLA counts a program without loops."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from jaxenc.hlo import work
from jaxenc.hlo.program import read

LAYERS, WIDTH, ROWS = 4, 32, 16
PRODUCTS = 2 * ROWS * WIDTH * WIDTH * LAYERS


def unrolled(w: jax.Array, x: jax.Array) -> jax.Array:
    for layer in range(LAYERS):
        x = jnp.tanh(x @ w[layer])
    return x.sum()


def scanned(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda x, k: (jnp.tanh(x @ k), None), x, w)[0].sum()


def compiled(function: Callable[..., jax.Array]) -> jax.stages.Compiled:
    return jax.jit(function).lower(jnp.zeros((LAYERS, WIDTH, WIDTH)), jnp.zeros((ROWS, WIDTH))).compile()


@pytest.mark.parametrize("function", [unrolled, jax.grad(unrolled)])
def test_the_bytes_are_those_of_xla_where_nothing_loops(function: Callable[..., jax.Array]) -> None:
    step = compiled(function)
    assert work.traffic(read(step.as_text())) == step.cost_analysis()["bytes accessed"]


def test_flops_of_products() -> None:
    """2 · rows · width² a layer, forward; three times that with gradients, but for the first layer's input. A loop costs what the
    unrolled layers do (and makes that gradient too), where XLA's own count has the body once."""
    of = lambda function: work.flops(read(compiled(function).as_text()))
    assert of(unrolled) == of(scanned) == PRODUCTS
    assert of(jax.grad(unrolled)) == PRODUCTS * (3 - 1 / LAYERS) and of(jax.grad(scanned)) == 3 * PRODUCTS
    assert compiled(scanned).cost_analysis()["flops"] < PRODUCTS


def test_a_loop_reads_one_layer_a_round() -> None:
    """Never all layers in each of the rounds: at most the parameters twice, and rows in and out of each of few kernels."""
    once = 4 * LAYERS * WIDTH * WIDTH
    assert once < work.traffic(read(compiled(scanned).as_text())) < 3 * once + 20 * LAYERS * 4 * ROWS * WIDTH


def of_entry(*lines: str) -> str:
    return "\n".join(["ENTRY %main (p: f32[1]) -> f32[1] {", *(f"  {line}" for line in lines), "}"])


@pytest.mark.parametrize(
    ("left", "right", "out", "attributes", "expected"),
    [
        # A product of rows and a kernel.
        ("64,32,128", "128,256,1", "64,32,256", "window={size=1}, dim_labels=0bf_io0->0bf", 2 * 64 * 32 * 128 * 256),
        # Queries and keys: 64 rows of 4 heads, 32 x 32 scores of 16 numbers each. All places of the window but one meet holes.
        (
            "64,32,4,16",
            "64,32,4,16",
            "64,4,32,32",
            "window={size=64x4 stride=63x3 lhs_dilate=64x4}, dim_labels=0b1f_0o1i->01bf",
            2 * 64 * 4 * 32 * 32 * 16,
        ),
        # Three kernels of 128 x 128 side by side: all places of the window but one meet the padding.
        (
            "64,32,128,1",
            "128,3,128,1",
            "64,32,3,128",
            "window={size=1x3 pad=0_0x2_2 rhs_reversal=0x1}, dim_labels=0bf1_i1o0->0b1f",
            2 * 64 * 32 * 128 * 3 * 128,
        ),
    ],
)
def test_flops_of_products_that_a_tpu_writes_as_convolutions(left: str, right: str, out: str, attributes: str, expected: int) -> None:
    text = of_entry(
        f"%l = bf16[{left}]{{0}} parameter(0)",
        f"%r = bf16[{right}]{{0}} parameter(1)",
        f"ROOT %convolution.1 = f32[{out}]{{0}} convolution(%l, %r), {attributes}",
    )
    assert work.flops(read(text)) == expected


def test_flops_of_a_librarys_product() -> None:
    config = '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}'
    call = f'custom-call(%l, %r), custom_call_target="__cublas$gemm", backend_config={config}'
    text = of_entry(
        "%l = f32[8,32]{1,0} parameter(0)", "%r = f32[32,4]{1,0} parameter(1)", f"ROOT %c.1 = (f32[8,4]{{1,0}}, s8[99]{{0}}) {call}"
    )
    assert work.flops(read(text)) == 2 * 8 * 32 * 4


def test_what_lies_inside_the_chip_is_not_moved() -> None:
    """A copy into the chip reads 400 bytes of memory; a kernel on what is there moves only its result."""
    text = of_entry(
        "%p = f32[100]{0:T(128)} parameter(0)",
        "%copy-start.1 = (f32[100]{0:T(128)S(1)}, f32[100]{0:T(128)}, u32[]{:S(2)}) copy-start(%p)",
        "%copy-done.1 = f32[100]{0:T(128)S(1)} copy-done(%copy-start.1)",
        "ROOT %negate.1 = f32[100]{0:T(128)} negate(%copy-done.1)",
    )
    assert work.traffic(read(text)) == 400 + 400


def test_a_fusion_inside_a_fusion_reads_a_slice() -> None:
    """Of a stack of 12 layers of 400 bytes one layer, once from memory; and a slice that is fetched into the chip costs one read."""
    text = """
%inner (a: f32[12,100], i: s32[]) -> f32[1,100] {
  %a = f32[12,100]{1,0} parameter(0)
  %i = s32[] parameter(1)
  ROOT %dynamic-slice.1 = f32[1,100]{1,0} dynamic-slice(%a, %i, %i), dynamic_slice_sizes={1,100}
}

%outer (b: f32[12,100], j: s32[]) -> f32[1,100] {
  %b = f32[12,100]{1,0} parameter(0)
  %j = s32[] parameter(1)
  %fusion.1 = f32[1,100]{1,0} fusion(%b, %j), kind=kLoop, calls=%inner
  ROOT %negate.1 = f32[1,100]{1,0} negate(%fusion.1)
}

ENTRY %main (p: f32[12,100], n: s32[]) -> f32[1,100] {
  %p = f32[12,100]{1,0} parameter(0)
  %n = s32[]{:S(2)} parameter(1)
  %slice-start.1 = ((f32[12,100]{1,0}), f32[1,100]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%p), slice={[0:1], [0:100]}
  ROOT %fusion.2 = f32[1,100]{1,0} fusion(%p, %n), kind=kLoop, calls=%outer
}
"""
    assert work.traffic(read(text)) == 400 + (400 + 400)
