"""The time of a step by kind of kernel: from HLO text, from events that overlap, and of a real step."""

import json

import pytest

from jaxenc.bench import kinds
from jaxenc.cli.main import main

PROGRAM = """HloModule jit_step, is_scheduled=true

%add.1 (a: f32[], b: f32[]) -> f32[] {
  ROOT %sum.1 = f32[] add(%a, %b)
}

%fused_dot (p: f32[8,8]) -> f32[8,8] {
  %negate.1 = f32[8,8]{1,0} negate(%p)
  ROOT %dot.7 = f32[8,8]{1,0} dot(%negate.1, %p), metadata={op_name="jit(step)/layer_00/attention/output/dot_general"}
}

%fused_sum (p: f32[8,8]) -> f32[8] {
  ROOT %reduce.1 = f32[8]{0} reduce(%p, %zero), dimensions={0}, to_apply=%add.1
}

ENTRY %main (p: f32[8,8]) -> f32[8,8] {
  %gemm_fusion.1 = f32[8,8]{1,0} fusion(%p), kind=kCustom, calls=%fused_dot, metadata={op_name="jit(step)/layer_00/attention/output/dot"}
  %custom-call.5 = (bf16[8,8]{1,0}, s8[16]{0}) custom-call(%p), custom_call_target="__cublas$lt$matmul"
  %custom-call.6 = bf16[8,8]{1,0} custom-call(%p), custom_call_target="triton", metadata={op_name="jit(step)/transpose(jvp(attend))/call"}
  %reduce_fusion = f32[8]{0} fusion(%p), kind=kInput, calls=%fused_sum
  %copy.3 = f32[8,8]{0,1} copy(%p)
  %scatter.2 = f32[8,8]{1,0} scatter(%p, %i, %u), to_apply=%add.1
  %all-reduce-start.1 = f32[8]{0} all-reduce-start(%reduce_fusion), to_apply=%add.1, metadata={op_name="jit(step)/optimizer/sum"}
  %fusion.9 = f32[8]{0} fusion(%p), kind=kInput, calls=%fused_sum, metadata={op_name="jit(step)/optimizer/reduce_sum"}
  ROOT %multiply.4 = f32[8,8]{1,0} multiply(%p, %p)
}
"""


def test_the_kind_of_each_instruction() -> None:
    """By scope, then by what it computes: the projections of a layer named `attention` are products, and a collective is always one."""
    found = kinds.kinds(PROGRAM)
    expected = {
        "gemm_fusion_1": "product",
        "custom_call_5": "product",
        "custom_call_6": "attention",
        "reduce_fusion": "reduction",
        "copy_3": "transpose",
        "scatter_2": "scatter",
        "all_reduce_start_1": "collective",
        "fusion_9": "optimizer",
        "multiply_4": "elementwise",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 4), (2, 6), (8, 9)], [3, 3, 1]),  # an overlap of 2 s is shared
        ([(0, 10), (2, 4), (4, 5), (2, 3)], [7, 1, 1, 1]),  # nested: the inner one has its time; sorted by start, then the longest
        ([(0, 3), (1, 4), (2, 5)], [1.5 + 1 / 3, 0.5 + 1 / 3 + 0.5, 1 / 3 + 0.5 + 1]),
    ],
)
def test_the_time_of_events_that_overlap(spans: list[tuple[float, float]], expected: list[float]) -> None:
    """Together they have the time in which any of them runs."""
    events = [kinds.Event("", start * 1e9, (end - start) * 1e9, "", "") for start, end in spans]
    assert [seconds for _, seconds in kinds.shared(events)] == pytest.approx(expected)


@pytest.mark.full
@pytest.mark.usefixtures("one_device")
def test_a_step_reports_its_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    """Only where they were asked for; every kind is known, and what each step has takes time."""
    small = [f"--config.model.{name}={value}" for name, value in (("width", 16), ("layers", 1), ("heads", 1), ("vocab_size", 1100))]
    arguments = ["bench", "step", "--config", "bert/tiny", "--steps", "1", "--config.train.batch=8", *small]
    assert main([*arguments, "--kinds"]) == 0
    found = json.loads(capsys.readouterr().out)["kinds"]
    assert set(found) <= set(kinds.KINDS) and min(found.values()) > 0
    assert {"product", "attention", "elementwise", "optimizer"} <= set(found)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert main(arguments) == 0
    assert "kinds" not in json.loads(capsys.readouterr().out)
