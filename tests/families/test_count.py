"""Parameter counts to the unit, without allocating a parameter."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn

from jaxenc import tree
from jaxenc.execution import Execution
from jaxenc.families.bert import sizes
from jaxenc.families.count import has_vocabulary, parameter_count, true_shape
from jaxenc.families.stacked import StackedEncoder
from jaxenc.heads.classifier import Classifier
from jaxenc.heads.masked_lm import MlmHead
from jaxenc.heads.pooler import Pooler
from jaxenc.layers.visible import Visible
from jaxenc.objectives.pair import PairConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.precision import policy
from jaxenc.training.state import parameters
from tests import tiny
from tests.objectives import contract, sentences, streams
from tests.objectives.test_reads import OBJECTIVES

EXECUTION = Execution(policy("float32"), "xla", "none", False)


def shapes(config):
    """Shapes of (encoder and pooler, the two pretraining heads)."""
    ids, key = jnp.zeros((1, 2), jnp.int32), jax.random.key(0)
    hidden, table = jnp.zeros((1, 2, config.width)), jnp.zeros((-(-config.vocab_size // 128) * 128, config.width))
    mlm = MlmHead(config.vocab_size, config.width, config.activation, config.norm_epsilon, config.initializer, EXECUTION)

    def init():
        encoder = StackedEncoder(config, EXECUTION).init(key, ids, ids, ids, Visible.by_lengths(jnp.array([2])), None)["params"]
        encoder["pooler"] = Pooler(config.width, "tanh", config.initializer, EXECUTION).init(key, hidden, ids)["params"]
        pair = Classifier(2, config.initializer, EXECUTION)
        heads = {"mlm": mlm.init(key, hidden, table)["params"], "nsp": pair.init(key, hidden[:, 0])["params"]}
        return nn.meta.unbox((encoder, heads))

    return jax.eval_shape(init)


@pytest.mark.parametrize(
    "name, encoder, whole",
    [
        ("tiny", 4_385_920, 4_433_468),
        ("mini", 11_170_560, 11_267_900),
        ("small", 28_763_648, 29_058_876),
        ("medium", 41_373_184, 41_668_412),
        ("base", 109_482_240, 110_106_428),
        ("large", 335_141_888, 336_226_108),
    ],
)
def test_published_sizes(name, encoder, whole):
    """Encoder with pooler, and with the heads, for the uncased vocabulary."""
    config = sizes.bert(*sizes.BERT[name])
    body, heads = shapes(config)
    assert parameter_count(body, config.vocab_size, ()) == encoder
    assert encoder + parameter_count(heads, config.vocab_size, ("mlm/bias",)) == whole


@pytest.mark.parametrize("name, count, masked", [("base", 124_645_632, 124_697_433), ("large", 355_359_744, 355_412_057)])
def test_roberta_sizes(name, count, masked):
    """Encoder with pooler, and the masked-token model without it, in the layout of transformers: one row of types, 514 positions."""
    config = sizes.roberta(*sizes.ROBERTA[name])
    body, heads = shapes(config)
    assert parameter_count(body, config.vocab_size, ()) == count
    alone = {part: branch for part, branch in body.items() if part != "pooler"} | {"mlm": heads["mlm"]}
    assert parameter_count(alone, config.vocab_size, ("mlm/bias",)) == masked


def test_true_shape_cuts_vocabulary_leaves_only():
    others = ("mlm/bias",)
    for table in ("token/table", "embeddings/token/table", "generator/embeddings/token/table"):
        assert true_shape(table, (384, 8), 300, others) == (300, 8)
    assert true_shape("mlm/bias", (384,), 300, others) == (300,)
    for path in ("embeddings/position/table", "other_token/table", "lm/bias"):
        assert true_shape(path, (384, 8), 300, others) == (384, 8)
    with pytest.raises(ValueError, match="384 rows, and 400 tokens are stored in 512"):
        true_shape("embeddings/token/table", (384, 8), 400, others)


def test_the_vocabulary_of_an_objective_is_every_leaf_with_a_row_a_token():
    """Found here by the number of rows, 256 for 200 tokens, which nothing else has."""
    own_tables = tiny.objective(ReplacedMlmConfig(), dataclasses.replace(tiny.PAIR, sharing="none"))
    by_ids = sentences.objective(model=dataclasses.replace(sentences.MODEL, input="tokens"))
    found = {}
    for objective in (tiny.objective(PairConfig()), own_tables, streams.objective(), by_ids):
        leaves = [(path, leaf.shape[0]) for path, leaf in tree.leaves(parameters(objective)[0])]
        assert [has_vocabulary(path, objective.vocabulary) for path, _ in leaves] == [rows == 256 for _, rows in leaves]
        found[type(objective).__name__] = [path for path, rows in leaves if rows == 256]
    tables = ["embeddings/token/table", "generator/embeddings/token/table"]
    assert found == {
        "Pair": [tables[0], "mlm/bias"],
        "ReplacedMlm": [*tables, "mlm/bias", "replaced_mlm/bias"],
        "Plm": [tables[0], "lm/bias"],
        "Bilm": ["softmax/bias", "softmax/table", "token/table"],
    }


@pytest.mark.parametrize("name", OBJECTIVES)
def test_leaves_with_a_row_for_each_token_are_those_whose_axis_says_so(name: str) -> None:
    contract.assert_vocabulary(OBJECTIVES[name]()[0])
