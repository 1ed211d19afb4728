"""Packed rows in training: a text's loss is that of the text alone in its row, and no text sees another."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import TOKEN_TABLE
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import parameters
from tests import tiny
from tests.selection import thinned

TEXTS = ((5, 3, 8), (16,), (7, 9), (4,))  # tokens of the texts of each row of 16 places, specials included
LENGTH = 16
SIZES = {"vocab_size": 200, "width": 16, "layers": 2, "heads": 2, "feed_forward": 24, "positions": 16}
BERT = BertConfig(**SIZES)
ROBERTA = BertConfig(**SIZES, types=0, first_position=1)
PAIR = dataclasses.replace(tiny.PAIR, layers=2)
# A tenth of a thousandth of the noise: the generator samples its most likely token, whatever the row's key.
SHARP = 1e-4
OBJECTIVES = {
    "mlm": (MlmConfig(rate=0.4), BERT, None),
    "rtd": (RtdConfig(rate=0.4, temperature=SHARP), PAIR, None),
    "replaced_mlm": (ReplacedMlmConfig(rate=0.4, temperature=SHARP), PAIR, None),
    "distillation": (DistillationConfig(rate=0.4, teacher="T", soft_places="all"), DistilbertConfig(**SIZES), BERT),
    "causal": (CausalConfig(), BertConfig(**SIZES, attention="causal"), None),
}


def packed() -> tiny.Batch:
    """Rows of texts of random words between CLS and SEP; no two texts have a word in common."""
    rows = tiny.batch([0] * len(TEXTS), LENGTH)
    draw, words = np.random.default_rng(0), iter(np.random.default_rng(1).permutation(np.arange(5, 200)))
    for row, sizes in enumerate(TEXTS):
        at = 0
        for number, size in enumerate(sizes, 1):
            here = slice(at, at + size)
            rows["tokens"][row, here] = [2, *(next(words) for _ in range(size - 2)), 3]
            rows["segments"][row, here], rows["positions"][row, here] = number, np.arange(size)
            rows["word_starts"][row, here] = [1, 1, *draw.integers(0, 2, size - 3), 1]
            at += size
    return rows


def alone(example: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The texts of a corrupted batch with a row each, their predicted places moved with them."""
    rows = []
    for row, sizes in enumerate(TEXTS):
        for number in range(1, len(sizes) + 1):
            places = np.flatnonzero(example["segments"][row] == number)
            one = {name: array[row].copy() for name, array in example.items()}
            for name in {"tokens", "original", "types", "segments", "positions", "word_starts"} & set(one):
                one[name] = np.zeros(LENGTH, np.int32)
                one[name][: len(places)] = example[name][row, places]
            one["segments"] = (one["segments"] > 0).astype(np.int32)
            if "masked" in one:
                own = (one["masked"] > 0) & np.isin(one["masked_at"], places)
                one["masked"], one["masked_at"] = own.astype(np.int32), np.where(own, one["masked_at"] - places[0], 0)
            rows.append(one)
    return {name: np.stack([one[name] for one in rows]) for name in rows[0]}


def objective_of(name: str, is_packed: bool) -> Any:
    config, model, teacher = OBJECTIVES[name]
    return tiny.objective(config, model, LENGTH, dataclasses.replace(tiny.execution(), packed=is_packed), teacher=teacher)


@pytest.mark.parametrize("name", thinned(OBJECTIVES, "rtd", "causal"))
def test_the_loss_of_packed_texts_is_that_of_each_alone(name: str) -> None:
    """Within 1e-5 of each term, on the same corrupted texts."""
    together, apart = objective_of(name, True), objective_of(name, False)
    # Twice as large, so that attention is far from uniform and a wrong mask shows.
    params = jax.tree.map(lambda leaf: 2 * leaf, tiny.filled(parameters(together)[0], together, 200))
    rows, keys = tiny.reads(packed(), together), rng.training(0, jnp.int32(4), len(TEXTS))
    example = jax.device_get(jax.vmap(together.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, keys.step))
    single = alone(example)
    sums = lambda one: jax.jit(lambda example, keys: one.terms(params, {}, example, keys, False)[0])
    each = sums(apart)
    found, wanted, blind = (
        sums(together)(example, keys),
        each(single, rng.training(0, jnp.int32(4), len(single["index"]))),
        each(example, keys),
    )
    weights = together.weights(example), apart.weights(single)
    assert found.keys() == wanted.keys() and jax.device_get(weights[0]) == jax.device_get(weights[1])
    for term, count in weights[0].items():
        assert count > 0, term
        assert abs(found[term] - wanted[term]) <= 1e-5 * abs(wanted[term]), term
        assert abs(blind[term] - wanted[term]) > 1e-4 * abs(wanted[term]), f"{term}: the mask of one text would do as well"


@pytest.mark.parametrize("unit", ["tokens", "words", "spans"])
def test_no_first_or_last_token_of_a_text_is_masked(unit: str) -> None:
    objective = tiny.objective(MlmConfig(rate=0.6, unit=unit), BERT, LENGTH)
    rows = tiny.reads(packed(), objective)
    corrupt = jax.jit(jax.vmap(objective.corrupt, in_axes=(0, 0, None)))
    for step in range(20):
        keys = rng.training(0, jnp.int32(step), len(TEXTS))
        example = jax.device_get(corrupt(keys.per_row("corrupt", "mask"), rows, keys.step))
        special = np.isin(rows["tokens"], (2, 3))
        assert example["masked"].any() and (example["tokens"] == rows["tokens"])[special].all()
        assert not np.isin(example["masked_ids"][example["masked"] > 0], (2, 3)).any()


MODELS = {
    "bert": (MlmConfig(), BERT),
    "roberta": (MlmConfig(), ROBERTA),
    "albert": (MlmConfig(), AlbertConfig(**SIZES, embedding=8)),
    "distilbert": (MlmConfig(), DistilbertConfig(**SIZES)),
    "electra": (RtdConfig(), PAIR),
    "gpt": (CausalConfig(), GptConfig(**SIZES)),
}


@pytest.mark.parametrize("name", thinned(MODELS, "bert", "gpt"))
def test_no_gradient_passes_from_one_text_to_the_embeddings_of_another(name: str) -> None:
    """Exactly zero, in the rows of the token table that only the other text reads; its own are not zero."""
    objective = tiny.objective(*MODELS[name], LENGTH, dataclasses.replace(tiny.execution(), packed=True))
    encoder = objective.discriminator if name == "electra" else objective.encoder
    params, rows = tiny.filled(parameters(objective)[0], objective, 200), packed()
    mixed = jnp.asarray(np.random.default_rng(2).normal(0, 1, (len(TEXTS), LENGTH, encoder.width)), jnp.float32)

    @jax.jit
    @jax.grad
    def slopes(params: Any, counted: jax.Array) -> jax.Array:
        return jnp.sum(encoders.read(encoder, params, rows, None).last * mixed * counted[..., None])

    texts = {(row, number) for row, sizes in enumerate(TEXTS) for number in range(1, len(sizes) + 1)}
    ids = {(row, k): rows["tokens"][row][(rows["segments"][row] == k) & (rows["tokens"][row] > 4)] for row, k in texts}
    for row, number in ((0, 1), (0, 2), (0, 3), (2, 2)):
        counted = np.zeros((len(TEXTS), LENGTH), np.float32)
        counted[row] = rows["segments"][row] == number
        found = [np.abs(leaf).max(axis=1) for path, leaf in tree.leaves(slopes(params, counted)) if path.endswith(TOKEN_TABLE)]
        moved = np.max(found, axis=0)
        assert (moved[ids[row, number]] > 0).all()
        assert all(not moved[ids[other]].any() for other in texts - {(row, number)}), (row, number)


def test_rows_decide_how_a_run_is_computed() -> None:
    """cudnn has no mask for packed rows: `auto` takes the next best, and asking for it is refused."""
    run = Run(data=DataConfig(rows="packed"), model=dataclasses.replace(BERT, attention_dropout=0.0))
    assert run.execution("cpu", 128).packed and not dataclasses.replace(run, data=DataConfig()).execution("cpu", 128).packed
    bfloat16 = lambda run, **given: dataclasses.replace(run, train=TrainConfig(precision="bfloat16", **given))
    assert bfloat16(dataclasses.replace(run, data=DataConfig())).execution("gpu", 1024).attention == "cudnn"
    assert bfloat16(run).execution("gpu", 1024).attention == "pallas"
    with pytest.raises(UserError, match="cudnn', which has no mask for packed rows"):
        bfloat16(run, attention="cudnn").execution("gpu", 128)
