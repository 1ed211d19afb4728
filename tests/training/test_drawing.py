"""Initial parameters that are drawn alone are those of Flax."""

import jax
import pytest

from jaxenc import rng
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training import drawing
from tests import tiny


@pytest.mark.parametrize("config, model", [(PairConfig(), tiny.MODEL), (RtdConfig(), tiny.PAIR)], ids=["one network", "two"])
def test_the_bits_and_names_are_those_of_init(config: ObjectiveConfig, model: ModelConfig) -> None:
    """Of a model whose layers are recomputed and scanned, which are inside other operations of what is traced."""
    init = tiny.objective(config, model, how=tiny.execution("block", True)).init
    drawn, whole = drawing.draw(init, rng.init_key(3)), init(rng.init_key(3))
    assert jax.tree.structure(drawn) == jax.tree.structure(whole)
    tiny.assert_bitwise(drawn, whole)


def test_what_no_parameter_depends_on_is_not_run() -> None:
    run = []

    def init(key: jax.Array) -> dict[str, jax.Array]:
        kernel = jax.random.normal(key, (2, 3))
        jax.pure_callback(lambda given: run.append(given) or given, kernel, kernel)
        return {"kernel": kernel}

    tiny.assert_bitwise(drawing.draw(init, rng.init_key(0)), {"kernel": jax.random.normal(rng.init_key(0), (2, 3))})
    assert not run
