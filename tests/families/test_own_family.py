"""A family that is defined outside of jaxenc: a causal pre-norm encoder without biases, gated, whose two layers share their parameters.

Passed as `models`, it pretrains, is evaluated, resumes, loads and encodes, without a line about it in jaxenc.
"""

import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

import jaxenc
from jaxenc import families, rng, tree
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary, unnamed
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.states import States, states
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.layers.visible import Visible
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.reports.report import report
from jaxenc.rng import Keys
from jaxenc.training.run import Run
from tests import tiny
from tests.training.conftest import make_data
from tests.training.test_loop import recipe

STEPS = 4


@dataclasses.dataclass(frozen=True)
class ToyConfig(EncoderConfig):
    """A toy."""

    kind: ClassVar[str] = "toy"
    types: ClassVar[int] = 0

    vocab_size: int = 200
    width: int = 16
    layers: int = 2
    positions: int = 64
    activation: str = "gelu_tanh"
    norm_epsilon: float = 1e-5
    dropout: float = 0.1
    attention_dropout: float = 0.1
    init: str = "normal"
    init_scale: float = 0.02
    attention: str = "causal"

    @property
    def published_vocabulary(self) -> Vocabulary:
        return unnamed(self.vocab_size)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Toy":
        self.check_heads(heads)
        return Toy(self, execution)

    @property
    def block(self) -> BlockSpec:
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, 2, 24, self.activation, self.norm_epsilon, *rates, self.initializer, "pre", biases=False, gated=True)


class Toy(nn.Module):
    """Its encoder: two layers with the parameters of one."""

    config: ToyConfig
    execution: Execution

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def table_width(self) -> int:
        return self.config.width

    @nn.compact
    def __call__(
        self, tokens: jax.Array, types: jax.Array, positions: jax.Array, visible: Visible, noise: Keys | None, all_layers: bool = False
    ) -> States:
        config = self.config
        sizes = (config.vocab_size, config.width, config.positions, 0, 0, config.norm_epsilon, config.dropout, config.initializer)
        hidden, table = Embeddings(EmbeddingsSpec(*sizes, table_dropout=0.1), self.execution, name="embeddings")(
            tokens, types, positions, noise
        )
        stack = Stack(config.block, config.layers, self.execution, stored=1, name="encoder")
        return states(stack(hidden, visible, noise, all_layers), table, all_layers)

    def forward_flops(self, length: int) -> float:
        return stack_flops(self.config.block, self.config.layers, length)


MODELS = families.with_built_in(ToyConfig)
TOY = ToyConfig()
SMALL = dataclasses.replace(tiny.MODEL, width=16, layers=1, heads=2, feed_forward=24)
RUNS: dict[str, tuple[ObjectiveConfig, Any]] = {
    "mlm": (MlmConfig(), TOY),
    "causal": (CausalConfig(), TOY),
    "rtd, it reads": (RtdConfig(), NetworkPairConfig(SMALL, TOY, "table")),
    "rtd, it replaces": (RtdConfig(), NetworkPairConfig(TOY, SMALL)),
}
ENCODER = {
    "attention/key/kernel",
    "attention/norm/scale",
    "attention/output/kernel",
    "attention/query/kernel",
    "attention/value/kernel",
} | {f"feed_forward/{name}" for name in ("down/kernel", "gate/kernel", "norm/scale", "up/kernel")}


@pytest.fixture(scope="module", autouse=True)
def one_device() -> Iterator[None]:
    with tiny.on_one_device():
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("toy") / "first", 1)


def run_of(name: str, data: Path) -> Run:
    objective, model = RUNS[name]
    run = recipe(data, objective=objective, model=model, optim=OptimConfig(lr=1e-2, warmup=1))
    train, checkpoint = dataclasses.replace(run.train, steps=STEPS), dataclasses.replace(run.checkpoint, every=2)
    return dataclasses.replace(run, train=train, checkpoint=checkpoint, data=DataConfig(path=str(data), length=24))


# tests/families/test_network_pair.py has that either network of a pair may be any encoder.
@pytest.mark.parametrize(
    "name", ["mlm", *(pytest.param(name, marks=pytest.mark.full) for name in ("rtd, it reads", "causal", "rtd, it replaces"))]
)
def test_it_pretrains_evaluates_and_loads_by_registration_alone(name: str, data: Path, tmp_path: Path) -> None:
    """And is refused without it."""
    run = run_of(name, data)
    outcome = jaxenc.pretrain(run, tmp_path / "run", models=MODELS)
    if name == "mlm":
        assert report(tmp_path / "run").held_out["step"] == STEPS  # it needs no model
        with pytest.raises(UserError, match="config.model.kind is 'toy'; use one of the kinds .*bert, "):
            jaxenc.load(tmp_path / "run")
    assert outcome.step == STEPS and all(np.isfinite(list(outcome.held_out.values())))
    found = jaxenc.evaluate(tmp_path / "run", models=MODELS)
    loss = next(key for key in found.numbers if key.endswith("_loss"))
    assert found.numbers[loss] == outcome.held_out[loss]
    assert jaxenc.pretrain(run, tmp_path / "run", models=MODELS).step == STEPS  # finished: its config.json is read

    model = jaxenc.load(tmp_path / "run", models=MODELS)
    own = {"mlm": (), "causal": (), "rtd, it reads": ("discriminator",), "rtd, it replaces": ("generator",)}[name]
    branch = model.params
    for part in own:
        branch = branch[part]
    assert {path for path, _ in tree.leaves(branch["encoder"])} == {f"layer_00/{path}" for path in ENCODER} | {"final_norm/scale"}
    # What it is used for sees the past alone where the toy is what is used.
    tokens = np.array([[2, 9, 8, 7, 6, 3]])
    before, after = (model.encode(tokens=given).hidden for given in (tokens, np.where(np.arange(6) == 4, 11, tokens)))
    past = np.array_equal(before[:, :, :4], after[:, :, :4])
    assert past == (name != "rtd, it replaces") and not np.array_equal(before[:, :, 4:], after[:, :, 4:])


def test_a_kind_that_is_taken_is_refused() -> None:
    with pytest.raises(UserError, match="the kind 'bert' is taken"):
        families.with_built_in(type("Other", (ToyConfig,), {"kind": "bert"}))
    with pytest.raises(UserError, match="model Other: the kind 'toy' is taken"):
        families.with_built_in(ToyConfig, type("Other", (ToyConfig,), {}))


class Undecorated(ToyConfig):
    kind: ClassVar[str] = "undecorated"
    depth: int = 3


class Abstract(EncoderConfig):
    kind: ClassVar[str] = "abstract"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Undecided(ToyConfig):
    kind: ClassVar[str] = "undecided"
    depth: int = dataclasses.field()


@pytest.mark.parametrize(
    "config, words",
    [
        ("toy", "'toy' is not a model class; give a subclass of EncoderConfig"),
        (TOY, "is not a model class; .* not an instance of it"),
        (object, "is not a model class"),
        (type("Nameless", (ToyConfig,), {"kind": None}), "model Nameless: its kind is None; give the class a `kind`"),
        (Undecorated, "model Undecorated: it is not a frozen dataclass"),
        (Abstract, "model Abstract: it has no encoder, published_vocabulary; define"),
        (Undecided, "model Undecided: depth has no default"),
    ],
)
def test_what_is_no_model_is_one_line(config: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        families.with_built_in(config)


def test_a_model_that_is_not_passed_is_refused_before_it_trains(data: Path, tmp_path: Path) -> None:
    """It could not be read back: neither resumed nor opened."""
    for name in ("mlm", "rtd, it reads"):
        with pytest.raises(UserError, match="kind is 'toy'; use one of the kinds .*bert, "):
            jaxenc.pretrain(run_of(name, data), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_its_tied_softmax_reads_the_table_that_dropout_changed() -> None:
    """In training the logits of the next token are the product with the dropped table: with the stored one they are others."""
    objective = tiny.objective(CausalConfig(), dataclasses.replace(TOY, dropout=0.0, attention_dropout=0.0), 12)
    params, batch = tiny.drawn(Run(CausalConfig(), TOY)), tiny.batch((12, 9), 12)
    keys = rng.training(0, jnp.int32(4), 2)
    encoder = objective.encoder
    given = (batch["tokens"], batch["types"], batch["positions"], encoder.config.visible(jnp.asarray(batch["segments"])))
    drawn = jax.jit(lambda params: encoder.apply({"params": params}, *given, keys))(params)
    stored = params["embeddings"]["token"]["table"]
    kept = np.asarray(drawn.table) != 0
    assert 0.85 < kept[: TOY.vocab_size].mean() < 0.95
    np.testing.assert_allclose(np.asarray(drawn.table)[kept], stored[kept] / 0.9, rtol=1e-6)
    logits = np.float64(drawn.last) @ np.float64(drawn.table).T
    odds = logits[..., : TOY.vocab_size] - np.log(np.exp(logits[..., : TOY.vocab_size]).sum(-1, keepdims=True))
    real = (batch["segments"][:, :-1] > 0) & (batch["segments"][:, 1:] > 0)
    wanted = -sum(odds[row, place, batch["tokens"][row, place + 1]] for row, place in np.argwhere(real))
    loss = jax.jit(lambda params: objective.terms(params, {}, batch, keys, True)[0]["causal"])(params)
    assert abs(float(loss) - wanted) <= 1e-5 * abs(wanted)
