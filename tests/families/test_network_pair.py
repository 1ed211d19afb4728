"""A pair of two models that know nothing of one another: it is an ELECTRA where it has an ELECTRA's sizes, and takes any two encoders."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import config, rng, tree
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.accumulate import combine
from jaxenc.training.run import Run, from_dict
from jaxenc.training.state import parameters
from tests import tiny
from tests.kinds import advised, fitting

ONE = dataclasses.replace(tiny.MODEL, layers=1, activation="gelu_erf")
SMALL = dataclasses.replace(ONE, heads=2, feed_forward=48)
PAIR = NetworkPairConfig(SMALL, ONE, "embeddings")
# The same two networks as one family has them.
ELECTRA = ElectraConfig(
    vocab_size=200,
    width=32,
    layers=1,
    heads=4,
    feed_forward=64,
    embedding=32,
    generator_width=32,
    generator_layers=1,
    generator_heads=2,
    generator_feed_forward=48,
    positions=64,
)
OTHER = XlnetConfig(vocab_size=200, width=24, layers=1, heads=2, feed_forward=40)
ROWS = tiny.batch((16, 9, 3, 1, 0, 12), 16)


def as_electra(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of PAIR, or their gradients, by ELECTRA's paths."""
    own = dict(params["discriminator"])
    return {**params, "embeddings": own.pop("embeddings"), "discriminator": own}


def loss_and_gradient(model: Any, params: dict[str, Any]) -> tuple[Any, Any]:
    """The loss of replaced-token detection in training step 4, with dropout, and its gradient."""
    objective, keys = tiny.objective(RtdConfig(), model, 16), rng.training(0, jnp.int32(4), 6)

    def loss(params: dict[str, Any]) -> jax.Array:
        rows = tiny.reads(ROWS, objective)
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, keys.step)
        return combine(objective, objective.terms(params, {}, example, keys, True)[0], objective.weights(example))

    return jax.device_get(jax.jit(jax.value_and_grad(loss))(params))


def test_it_is_an_electra_where_it_has_its_sizes() -> None:
    """Loss and gradient, bit for bit: the same draws, and both losses reach the shared embeddings."""
    params = tiny.drawn(Run(RtdConfig(), PAIR))
    (ours, slopes), (theirs, wanted) = loss_and_gradient(PAIR, params), loss_and_gradient(ELECTRA, as_electra(params))
    assert ours == theirs
    tiny.assert_close(as_electra(slopes), wanted, 1e-6)


@pytest.mark.parametrize(
    "sharing, missing", [("none", ()), ("table", ("embeddings/token/table",)), ("embeddings", ("embeddings/",))], ids=lambda x: str(x)
)
def test_what_is_shared_is_stored_once_with_the_discriminator(sharing: str, missing: tuple[str, ...]) -> None:
    shapes = parameters(tiny.objective(RtdConfig(), dataclasses.replace(PAIR, sharing=sharing)))[0]
    alone = {name: parameters(tiny.objective(model=model))[0] for name, model in (("generator", SMALL), ("discriminator", ONE))}
    for name, whole in alone.items():
        paths = {path for path, _ in tree.leaves({part: whole[part] for part in ("embeddings", "encoder")})}
        kept = {path for path in paths if name == "discriminator" or not path.startswith(missing or "/")}
        assert {path for path, _ in tree.leaves(shapes[name])} == kept


@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(RtdConfig(), id="rtd"),
        pytest.param(RtdConfig(generator="uniform"), id="uniform", marks=pytest.mark.full),
        pytest.param(ReplacedMlmConfig(), id="replaced", marks=pytest.mark.full),
    ],
)
def test_any_two_encoders_are_a_pair(objective: RtdConfig | ReplacedMlmConfig) -> None:
    """A BERT whose samples an XLNet reads: everything that is trained has a gradient that is not zero."""
    model = NetworkPairConfig(SMALL, OTHER)
    built, params = tiny.objective(objective, model, 16), tiny.drawn(Run(objective, model))
    keys = rng.training(0, jnp.int32(4), 6)

    def loss(params: dict[str, Any]) -> jax.Array:
        example = jax.vmap(built.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), tiny.reads(ROWS, built), keys.step)
        return combine(built, built.terms(params, {}, example, keys, True)[0], built.weights(example))

    slopes = jax.device_get(jax.jit(jax.grad(loss))(params))
    still = {path for path, leaf in tree.leaves(slopes) if not np.any(leaf)}
    # The query stream of XLNet, which no row of text asks.
    assert still <= {"discriminator/embeddings/mask"} and ("generator" in slopes) == ("mlm" in built.heads)


@pytest.mark.parametrize("turned", [False, True], ids=["generator first", "discriminator first"])
def test_a_row_fits_both_networks(turned: bool) -> None:
    """The lower number of positions and of types, 0 being no limit, and the higher attention dropout: fused attention needs 0 in both."""
    tight = dataclasses.replace(ONE, positions=16, types=1, attention_dropout=0.2)
    wide, free = dataclasses.replace(ONE, attention_dropout=0.0), dataclasses.replace(OTHER, attention_dropout=0.0)
    for other in (wide, free):
        pair = NetworkPairConfig(*((other, tight) if turned else (tight, other)))
        assert (pair.positions, pair.types, pair.attention_dropout) == (16, 1, 0.2)


def test_a_pair_is_written_and_read_as_a_config() -> None:
    run = Run(RtdConfig(), NetworkPairConfig(SMALL, OTHER))
    assert from_dict(config.to_dict(run)) == run
    assert run.with_vocabulary(dataclasses.replace(tiny.VOCABULARY, size=300)).model.generator.vocab_size == 300
    unused = Run(RtdConfig(generator="uniform"), run.model).unused
    assert {"model.generator.width", "model.sharing"} <= set(unused) and "model.discriminator.width" not in unused


deep: dict[str, Any] = {"kind": "bert"}
for _ in range(2000):  # deeper than Python's stack
    deep = {"kind": "pair", "generator": deep}


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: NetworkPairConfig(SMALL, ElmoConfig()), "model.discriminator.kind is elmo"),
        (lambda: NetworkPairConfig(SMALL, PAIR), "model.discriminator.kind is pair"),
        (lambda: tiny.objective(RtdConfig(), NetworkPairConfig(dataclasses.replace(SMALL, vocab_size=201), ONE)), "vocab_size is 201 and"),
        (lambda: NetworkPairConfig(SMALL, ONE, "all"), "model.sharing is 'all'"),
        (lambda: tiny.objective(RtdConfig(), NetworkPairConfig(BertConfig(200, 16, 1, 2, 8), ONE, "table")), "embeddings/token/table"),
        (lambda: tiny.objective(model=PAIR), "mlm is the head of the generator .*; set model.kind to bert"),
        (lambda: from_dict({"model": deep}), "config.model.generator.kind is 'pair'; use one of the kinds "),
        (lambda: tiny.objective(RtdConfig(), ONE), "set model.kind to electra or .*, not bert"),
    ],
)
def test_what_is_no_pair_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        make()


def test_the_kinds_that_are_named_are_those_that_a_pair_can_have() -> None:
    with pytest.raises(UserError) as error:
        from_dict({"model": {"kind": "pair", "generator": {"kind": "pair"}}})
    assert advised(error.value) == sorted(fitting(lambda model: NetworkPairConfig(SMALL, model)))
