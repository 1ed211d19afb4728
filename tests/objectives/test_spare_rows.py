"""R13: rows of the token table without a piece change no loss, get no gradient and are never drawn, in any objective."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.count import has_vocabulary
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives.base import Objective
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.accumulate import combine
from jaxenc.training.state import parameters
from tests import tiny
from tests.objectives import sentences, streams

PIECES, SPARE, ROWS = tiny.VOCABULARY.size, 30, 4
SIZES = {"vocab_size": PIECES + SPARE, "spare_rows": SPARE, "width": 8, "layers": 1, "heads": 2, "feed_forward": 8, "positions": 16}
BERT = BertConfig(**SIZES)
PAIR = ElectraConfig(**SIZES, embedding=8, generator_width=8, generator_layers=1, generator_heads=2, generator_feed_forward=8)
# Padded to other rows than its student's, and with as many pieces.
TEACHER = dataclasses.replace(BERT, vocab_size=PIECES + 100, spare_rows=100)


@dataclasses.dataclass(frozen=True)
class SpareElmo(ElmoConfig):
    """An ELMo of a family of one's own, whose tables have spare rows."""

    spare_rows: int = SPARE


def text(objective: Objective) -> dict[str, np.ndarray]:
    return tiny.reads(tiny.batch((12, 9, 12, 5), 12), objective)


# {name: (objective, its rows)}
OBJECTIVES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "mlm": (lambda: tiny.objective(MlmConfig(random_share=1.0, mask_share=0.0, replacements="all"), BERT, 12), text),
    "rtd": (lambda: tiny.objective(RtdConfig(), PAIR, 12), text),
    "uniform rtd": (lambda: tiny.objective(RtdConfig(generator="uniform"), PAIR, 12), text),
    "replaced_mlm": (lambda: tiny.objective(ReplacedMlmConfig(), PAIR, 12), text),
    "distillation": (
        lambda: tiny.objective(DistillationConfig(teacher="T", start="random"), DistilbertConfig(**SIZES), 12, teacher=TEACHER),
        text,
    ),
    "causal": (lambda: tiny.objective(CausalConfig(), GptConfig(**SIZES), 12), text),
    "plm": (
        lambda: streams.objective(model=dataclasses.replace(streams.MODEL, vocab_size=PIECES + SPARE, spare_rows=SPARE, layers=1)),
        lambda one: tiny.reads(streams.batch_at(0, ROWS), one),
    ),
    "bilm": (
        lambda: sentences.objective(
            dataclasses.replace(sentences.CONFIG, negatives=150),
            SpareElmo(**{**vars(sentences.MODEL), "vocab_size": PIECES + SPARE, "spare_rows": SPARE}),
        ),
        lambda one: tiny.reads(sentences.batch_at(0, ROWS), one),
    ),
}


def spare_rows(params: Any, objective: Objective) -> dict[str, Any]:
    """{path: the rows after those of the pieces} of every leaf with a row for each token."""
    return {path: leaf[PIECES:] for path, leaf in tree.leaves(params) if has_vocabulary(path, objective.vocabulary)}


def with_spare_rows(params: Any, objective: Objective, value: float) -> Any:
    """`params` with this number in all of these rows."""
    fill = lambda path, leaf: leaf.at[PIECES:].set(value) if has_vocabulary(path, objective.vocabulary) else leaf
    return tree.map_with_path(fill, params)


# All of them go through one function, so the short suite has one with a bias and one without.
SHORT = ("mlm", "causal")


@pytest.mark.parametrize("name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.full) for name in OBJECTIVES])
def test_what_they_hold_changes_nothing_and_stays(name: str) -> None:
    """With 0 and with 50 in them: bitwise the same losses and metrics, and no gradient. A softmax over them would add some 100 nats,
    and the samples of a generator would be theirs."""
    build, rows = OBJECTIVES[name]
    objective = build()
    keys, batch = rng.training(0, jnp.int32(0), ROWS), rows(objective)
    start = jax.tree.map(jnp.asarray, tiny.filled(parameters(objective)[0], objective, PIECES))

    @jax.jit
    def both(params: Any) -> Any:
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), batch, keys.step)

        def loss(params: Any, train: bool) -> Any:
            sums, metrics, _ = objective.terms(params, objective.carry(ROWS), example, keys, train)
            return combine(objective, sums, objective.weights(example)), metrics

        return example, jax.value_and_grad(loss, has_aux=True)(params, True), loss(params, False)

    none, some = (jax.device_get(both(with_spare_rows(start, objective, value))) for value in (0.0, 50.0))
    (example, (trained, gradient), exact), (_, (also_trained, _), also_exact) = some, none
    tiny.assert_bitwise((trained, exact), (also_trained, also_exact))
    assert len(spare_rows(gradient, objective)) and not any(rows.any() for rows in spare_rows(gradient, objective).values())
    assert max((example[field].max() for field in ("tokens", "original") if field in example), default=0) < PIECES


@pytest.mark.parametrize("name", ["rtd", "uniform rtd", pytest.param("replaced_mlm", marks=pytest.mark.full)])
def test_a_generator_draws_none(name: str) -> None:
    """1,000 rows of 12 masked places each, the largest biases on the spare rows."""
    build, _ = OBJECTIVES[name]
    objective = build()
    generator, rows = objective.generator, 1000
    batch, keys = text(objective), rng.training(0, jnp.int32(0), rows)
    at = np.tile(np.arange(12, dtype=np.int32), (rows, 1))
    example = {field: jnp.asarray(np.tile(values[:1], (rows, *[1] * (values.ndim - 1)))) for field, values in batch.items()}
    example |= {"original": example["tokens"], "masked_at": at, "masked": np.ones_like(at), "masked_ids": example["tokens"]}
    params = jax.tree.map(jnp.asarray, tiny.filled(parameters(objective)[0], objective, PIECES))
    drawn, _, _ = jax.jit(lambda params: generator.replace(params, example, keys, False))(with_spare_rows(params, objective, 50.0))
    drawn = np.asarray(drawn)
    assert drawn.max() < PIECES and len(np.unique(drawn)) > 150
