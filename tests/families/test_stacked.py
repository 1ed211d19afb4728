"""A family whose layers are a class of its own, in the network that BERT, GPT-1 and DistilBERT share."""

import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np
from flax import linen as nn

from jaxenc import tree
from jaxenc.families.bert.model import BertConfig
from jaxenc.inference.model import Model
from jaxenc.layers.block import Block
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.training.run import Run
from tests import tiny

SIZES = {"vocab_size": 200, "width": 16, "layers": 2, "heads": 2, "feed_forward": 24, "positions": 16}


class Scaled(Block):
    """A layer whose output is multiplied by one learned number."""

    @nn.compact
    def __call__(self, *inputs: Any) -> Any:
        scale = self.param("scale", nn.with_logical_partitioning(nn.initializers.ones, ()), ())
        return jax.tree.map(lambda out: scale * out, Block(self.spec, self.execution, name="plain")(*inputs))


@dataclasses.dataclass(frozen=True)
class ScaledConfig(BertConfig):
    """A BERT with such layers."""

    kind: ClassVar[str] = "scaled"
    layer_class: ClassVar[type[nn.Module]] = Scaled


def test_a_class_of_its_own_is_the_layer() -> None:
    """With scales of 1 it is a BERT, within 1e-6; twice the scale of the last layer doubles what that layer gives, and nothing before."""
    run, plain = (Run(HeadsConfig(()), cls(**SIZES)) for cls in (ScaledConfig, BertConfig))
    params = tiny.drawn(plain)
    leaves = {}
    for path, leaf in tree.leaves(params):
        part, layer, rest = path.split("/", 2)
        leaves[f"{part}/{layer}/plain/{rest}" if part == "encoder" else path] = leaf
    scales = lambda last: {"encoder/layer_00/scale": np.float32(1), "encoder/layer_01/scale": np.float32(last)}
    ids = {"tokens": np.array([[2, 9, 8, 7, 3]])}
    hidden = lambda one, given: np.asarray(Model(one, given, None).apply(given, ids)["hidden"])
    one, two = (hidden(run, tree.from_leaves((leaves | scales(last)).items())) for last in (1, 2))
    np.testing.assert_allclose(one, hidden(plain, params), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(two, one * np.array([1, 1, 2], np.float32)[:, None, None, None])
