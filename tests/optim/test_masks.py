import numpy as np
import pytest

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.optim.masks import decay_mask, factors, frozen, trained
from jaxenc.optim.optimizer import OptimConfig

PATHS = {
    "embeddings/norm/bias": False,
    "embeddings/norm/scale": False,
    "embeddings/word/table": True,
    "encoder/layer_00/attention/norm/scale": False,
    "encoder/layer_00/attention/query/bias": False,
    "encoder/layer_00/attention/query/kernel": True,
    "mlm/normal/kernel": True,
    "mlm/bias": False,
    "mlm/bias_net/kernel": True,
    "mlm/unbias/kernel": True,
}
PARAMS = tree.from_leaves((path, np.zeros(2)) for path in PATHS)


def test_biases_and_norms_do_not_decay_and_everything_else_does() -> None:
    assert dict(tree.leaves(decay_mask(OptimConfig().decay_exclude, PARAMS))) == PATHS


def test_no_exclusion_decays_every_parameter() -> None:
    assert all(value for _, value in tree.leaves(decay_mask((), PARAMS)))


def test_freezing_splits_the_tree_and_loses_nothing() -> None:
    config = OptimConfig(freeze=("embeddings/.*", "encoder/layer_00/.*"))
    held, moving = tree.split(PARAMS, frozen(config.freeze))
    assert [path for path, _ in tree.leaves(moving)] == ["mlm/bias", "mlm/bias_net/kernel", "mlm/normal/kernel", "mlm/unbias/kernel"]
    assert [path for path, _ in tree.leaves(trained(config.freeze, PARAMS))] == [path for path, _ in tree.leaves(moving)]
    assert len(list(tree.leaves(held))) + 4 == len(PATHS)


@pytest.mark.parametrize(
    "config, words",
    [
        (OptimConfig(decay_exclude=(".*/bias", ".*/LayerNorm/.*")), r"optim.decay_exclude: no parameter's path matches '.\*/LayerNorm/"),
        (OptimConfig(decay_exclude=("bias",)), "optim.decay_exclude: no parameter's path matches 'bias'"),
        (OptimConfig(decay_exclude=("(",)), r"optim.decay_exclude: '\(' is not a pattern"),
        (OptimConfig(freeze=("encoder/layer_0/.*",)), "optim.freeze: no parameter's path matches 'encoder/layer_0/"),
        (OptimConfig(freeze=(".*",)), "freezes every parameter"),
        (OptimConfig(rates=("encoder/.*",)), r"optim.rates: 'encoder/\.\*' is not PATTERN=FACTOR"),
        (OptimConfig(rates=("encoder/.*=-1",)), "optim.rates: .* give a factor from 0"),
        (OptimConfig(rates=("encoder/.*=nan",)), "optim.rates: .* give a factor from 0"),
        (OptimConfig(rates=("layers/.*=0.5",)), "optim.rates: no parameter's path matches 'layers/"),
    ],
)
def test_a_pattern_that_does_nothing_or_everything_is_one_line(config: OptimConfig, words: str) -> None:
    with pytest.raises(UserError, match=words):
        decay_mask(config.decay_exclude, PARAMS)
        trained(config.freeze, PARAMS)
        factors(config.rates, PARAMS)
