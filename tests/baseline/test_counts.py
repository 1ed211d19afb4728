"""How many matrix products, fusions and collectives the compiled step has: what makes a step slow on many devices shows here on a CPU."""

from pathlib import Path

import jax
import pytest

from tests.baseline import counts, inside, runs

AGAIN = "if this is meant, python -m tests.baseline.make counts, in both environments (.venv and .venv-3.12), and say in the commit why"

# What `fsdp` does to collectives depends on the axes of each family's parameters, which test_first_steps.py has of all; those of a BERT are
# in an ELECTRA. tests/training/test_sent.py reads every collective of `dp`.
SHORT = (("electra", "fsdp"),)
CASES = [
    pytest.param(name, preset, id=f"{name}-{preset}", marks=[] if (name, preset) in SHORT else pytest.mark.full)
    for name in runs.RESUMED
    for preset in counts.PRESETS
]


def test_the_reader_of_the_texts() -> None:
    hlo = """
      %fusion.1 = f32[4,2]{1,0} fusion(%p), kind=kLoop, calls=%fused
      ROOT %ag = (f32[4]{0}, u32[2,3]{1,0}) all-gather-start(%p, %q), metadata={op_name="all-reduce(x)"}
      %many = (u32[1]{0}, /*index=1*/u32[3]{0}) all-reduce(%x, %y), to_apply=%add
      dot.2 = f32[2,2]{1,0} dot(a, b), lhs_contracting_dims={1}
    """
    assert counts.compiled(hlo) == {"dot": 1, "fusion": 1, "all-gather": 1, "all-reduce": 1, "all": 4}
    stablehlo = """
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
      %2:2 = "stablehlo.all_to_all"(%1) : (tensor<2xf32>) -> tensor<2xf32>
    """
    assert counts.lowered(stablehlo) == {"dot_general": 1, "reduce": 1, "all": 3}


@pytest.mark.slow
@pytest.mark.parametrize("name, preset", CASES)
def test_counts_of_the_compiled_step(name: str, preset: str, tmp_path: Path) -> None:
    """On eight devices, after XLA's passes and before; recorded for each version line of jax."""
    path = runs.HERE / "counts" / f"{counts.line_of(jax.__version__)}.json"
    assert path.exists(), f"jax {jax.__version__} has no counts yet: python -m tests.baseline.make counts"
    text, compiled = inside.subject(runs.config_of(name), runs.data_of(name, tmp_path), runs.stopped_at(name), preset).compiled()
    found = {"stablehlo": counts.lowered(text), "hlo": counts.compiled(compiled.step.as_text())}
    assert found == runs.read(path)[f"{name} {preset}"], AGAIN
