"""ALBERT: published sizes, one set of parameters for all layers, and the order of sentences."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.albert.sizes import ALBERT, albert
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.count import parameter_count
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig, SentenceOrderConfig
from jaxenc.training.accumulate import combine
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests import tiny

SIZES = {"vocab_size": 200, "width": 16, "layers": 3, "heads": 2, "feed_forward": 24, "positions": 64}
TINY = AlbertConfig(**SIZES, embedding=8, dropout=0.1, attention_dropout=0.1)
ROWS = tiny.batch((12, 9, 3, 12), 12)


@pytest.mark.parametrize("name, count", [("base", 11_683_584), ("large", 17_683_968), ("xlarge", 58_724_864), ("xxlarge", 222_595_584)])
def test_published_sizes(name: str, count: int) -> None:
    """The encoder with its pooler, from shapes alone."""
    model = albert(*ALBERT[name])
    objective = tiny.objective(HeadsConfig(("pooler",)), model, 512)
    assert parameter_count(parameters(objective)[0], model.vocab_size, objective.vocabulary) == count


@pytest.mark.full
def test_the_gradient_of_the_shared_layer_is_the_sum_over_its_uses() -> None:
    """Compared with a BERT of three layers that hold equal parameters, on the same tables: dropout draws by the layer's number in both. In
    the short suite tests/layers/test_block.py shares layers of a stack, and golden arrays have the gradients of ALBERT."""
    wide = dataclasses.replace(TINY, embedding=16)
    bert = BertConfig(**SIZES, dropout=0.1, attention_dropout=0.1)
    params = tiny.drawn(Run(MlmConfig(), wide))
    # BERT has no dense layer after its tables.
    params["project"] = {"kernel": np.eye(16, dtype=np.float32), "bias": np.zeros(16, np.float32)}
    whole = {name: branch for name, branch in params.items() if name != "project"}
    whole["encoder"] = {f"layer_0{number}": params["encoder"]["layer_00"] for number in range(3)}

    def loss_of(model: Any, given: dict[str, Any]) -> tuple[Any, Any]:
        objective, keys = tiny.objective(MlmConfig(), model, 12), rng.training(0, jnp.int32(4), 4)
        every_row = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))
        example = every_row(keys.per_row("corrupt", "mask"), tiny.reads(ROWS, objective), keys.step)
        loss = lambda params: combine(objective, objective.terms(params, {}, example, keys, True)[0], objective.weights(example))
        return jax.device_get(jax.jit(jax.value_and_grad(loss))(given))

    (ours, slopes), (theirs, apart) = loss_of(wide, params), loss_of(bert, whole)
    assert abs(ours - theirs) <= 1e-6 * abs(theirs)
    summed = jax.tree.map(lambda *leaves: sum(leaves), *(apart["encoder"][f"layer_0{number}"] for number in range(3)))
    tiny.assert_close(slopes["encoder"], {"layer_00": summed}, 1e-5)
    tiny.assert_close({"embeddings": slopes["embeddings"]}, {"embeddings": apart["embeddings"]}, 1e-5)


def test_groups_are_stored_once_each() -> None:
    shapes = parameters(tiny.objective(MlmConfig(), dataclasses.replace(TINY, layers=4, groups=2)))[0]
    assert sorted(shapes["encoder"]) == ["layer_00", "layer_01"]
    assert shapes["mlm"]["dense"]["kernel"].shape == (16, 8) and shapes["embeddings"]["position"]["table"].shape == (64, 8)


def test_sentence_order_is_a_class_of_the_pooled_vector() -> None:
    """The loss is that of the published formula on the pooled vectors (google-research/albert run_pretraining.py,
    get_sentence_order_output): log-softmax of two classes, mean over rows."""
    objective, params = tiny.objective(SentenceOrderConfig(), TINY, 12), tiny.drawn(Run(SentenceOrderConfig(), TINY))
    keys = rng.evaluation(0, jnp.asarray(ROWS["index"]))
    every_row = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))
    example = every_row(keys.per_row("corrupt", "mask"), tiny.reads(ROWS, objective), keys.step)
    terms, metrics, _ = jax.jit(lambda params: objective.terms(params, {}, example, keys, False))(params)
    pooled = np.float64(jax.jit(objective.outputs)(params, example)["pooled"])
    logits = pooled @ params["sentence_order"]["dense"]["kernel"] + params["sentence_order"]["dense"]["bias"]
    odds = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    wanted = -odds[np.arange(4), ROWS["is_random"]].sum()
    assert abs(float(terms["sentence_order"]) - wanted) <= 1e-5 * wanted
    assert objective.coef == {"mlm": 1.0, "sentence_order": 1.0} and float(metrics["sentence_order_loss"][1]) == 4
    paths = {path for path, leaf in tree.leaves(params) if path.startswith(("pooler", "sentence_order"))}
    assert paths == {f"{head}/dense/{leaf}" for head in ("pooler", "sentence_order") for leaf in ("kernel", "bias")}


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: AlbertConfig(width=10, heads=3), "model.width 10 does not divide into model.heads 3"),
        (lambda: AlbertConfig(layers=2, groups=3), "model.groups is 3 and model.layers 2"),
        (
            lambda: tiny.objective(PairConfig(), TINY, 12),
            "next_sentence is not a head of model.kind albert; set model.kind to bert or ",
        ),
        (lambda: tiny.objective(SentenceOrderConfig(), tiny.MODEL, 12), "sentence_order is not a head of model.kind bert"),
    ],
)
def test_what_does_not_fit_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()
