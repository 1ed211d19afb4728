"""The reader of HLO text: computations, arrays, and how often a loop's body runs."""

import jax
import jax.numpy as jnp
import pytest

from jaxenc.hlo.program import Array, read

LOOPS = """HloModule jit_step, is_scheduled=true

%inner_body (p.1: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p.1 = (s32[]{:T(128)}, f32[4]{0:T(128)S(1)}) parameter(0)
  ROOT %tuple.1 = (s32[], f32[4]{0}) tuple(%p.1, %p.1)
}

%inner_condition (p.2: (s32[], f32[4])) -> pred[] {
  %limit.1 = s32[] constant(99)
  %start.1 = s32[] constant(0)
  ROOT %lt.1 = pred[] compare(%start.1, %limit.1), direction=LT
}

%outer_body (p.3: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p.3 = (s32[], f32[4]{0}) parameter(0)
  ROOT %while.1 = (s32[], f32[4]) while(%p.3), condition=%inner_condition, body=%inner_body, backend_config={"known_trip_count":{"n":"5"}}
}

%outer_condition (p.4: (s32[], f32[4])) -> pred[] {
  %limit.2 = s32[]{:T(128)} constant(12)
  ROOT %lt.2 = pred[]{:T(512)} compare(%p.4, %limit.2), direction=LT
}

%fused (p.5: f32[4]) -> f32[4] {
  ROOT %negate.1 = f32[4]{0} negate(%p.5)
}

%sum (a: f32[], b: f32[]) -> f32[] {
  ROOT %add.1 = f32[] add(%a, %b)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = bf16[2,8]{1,0:T(8,128)(2,1)S(1)} parameter(0), metadata={op_name="batch[\\'tokens\\']"}
  %fusion.1 = f32[4]{0} fusion(%p), kind=kLoop, calls=%fused, metadata={op_name="jit(step)/attend/neg"}
  %fusion.2 = f32[4]{0} fusion(%p), kind=kLoop, calls=%fused
  %reduce.1 = f32[]{:T(128)} reduce(%p, %fusion.1), dimensions={0}, to_apply=%sum
  ROOT %while.2 = (s32[], f32[4]{0}) while(%fusion.1), condition=%outer_condition, body=%outer_body
}
"""


def test_how_often_each_computation_runs() -> None:
    """A loop inside a loop: 12 by the number in the condition, as a TPU's program has it, times 5 as the compiler says; a computation that
    two fusions call, twice; a reduction's of scalars, never."""
    times = read(LOOPS).times()
    assert {name: times[name] for name in ("main", "outer_body", "inner_body", "fused", "sum")} == {
        "main": 1,
        "outer_body": 12,
        "inner_body": 60,
        "fused": 2,
        "sum": 0,
    }


def test_what_an_instruction_holds() -> None:
    program = read(LOOPS)
    main = program.computations[program.entry]
    assert main["p"].arrays == (Array("bf16", (2, 8), 1),) and main["p"].nbytes == 32
    assert (
        main["fusion.1"].operands == ("p",) and main["fusion.1"].called == ("fused",) and main["fusion.1"].scope == "jit(step)/attend/neg"
    )
    assert main["while.2"].arrays == (Array("s32", (), 0), Array("f32", (4,), 0)) and main["while.2"].is_root
    inner = program.computations["inner_body"]["p.1"]
    assert [array.space for array in inner.arrays] == [0, 1]


@pytest.mark.parametrize("dtype, nbytes", [("pred", 3), ("s4", 1), ("f8e4m3fn", 3), ("bf16", 6), ("u32", 12), ("c64", 24), ("token", 0)])
def test_the_bytes_of_an_array(dtype: str, nbytes: int) -> None:
    assert Array(dtype, (3,), 0).nbytes == nbytes


@pytest.mark.parametrize("rounds", [1, 7])
def test_the_rounds_of_a_loop_that_this_jax_compiles(rounds: int) -> None:
    """Of a scan on a CPU: its body runs `rounds` times, or is in the entry where the compiler took the loop away."""
    step = jax.jit(lambda x, w: jax.lax.scan(lambda x, k: (jnp.tanh(x @ k), None), x, w)[0])
    text = step.lower(jnp.zeros((8, 16)), jnp.zeros((rounds, 16, 16))).compile().as_text()
    program = read(text)
    times = program.times()
    assert sum(times[name] for name, body in program.computations.items() if any(one.opcode == "dot" for one in body.values())) == rounds
