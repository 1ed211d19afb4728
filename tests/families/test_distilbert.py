"""DistilBERT: its published size, and what transformers has no model for."""

import dataclasses
from typing import Any

import pytest

from jaxenc.convert import hf
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.distilbert.sizes import DISTILBERT, distilbert
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests import tiny

TINY = DistilbertConfig(vocab_size=200, width=16, layers=2, heads=2, feed_forward=24, positions=64)


@pytest.mark.parametrize("objective, count", [(HeadsConfig(()), 66_362_880), (MlmConfig(), 66_985_530)], ids=["encoder", "mlm"])
def test_the_published_size(objective: Any, count: int) -> None:
    """From shapes alone; 66 million in table 1 of Sanh et al. 2019."""
    model = distilbert(*DISTILBERT["base"])
    assert model == DistilbertConfig()
    fitted = tiny.objective(objective, model, 512)
    assert parameter_count(parameters(fitted)[0], model.vocab_size, fitted.vocabulary) == count


def exported(objective: Any, **fields: Any) -> None:
    run = Run(objective, dataclasses.replace(TINY, **fields))
    hf.export(Model(run, tiny.drawn(run), None))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: DistilbertConfig(width=10, heads=3), "model.width 10 does not divide into model.heads 3"),
        (
            lambda: tiny.objective(PairConfig(), TINY, 12),
            "next_sentence is not a head of model.kind distilbert; set model.kind to bert or ",
        ),
        (lambda: exported(MlmConfig(), norm_epsilon=1e-5), "model.norm_epsilon is 1e-05; transformers' DistilBERT has 1e-12"),
        (lambda: exported(MlmConfig(), attention="causal"), "model.attention is causal"),
        (lambda: exported(HeadsConfig(("pooler",))), "no pooler but that of its classifier"),
        (lambda: exported(HeadsConfig(("pooler", "classifier"), ("a", "b"))), "pooler_activation is tanh; .* DistilBERT has relu"),
        (
            lambda: exported(HeadsConfig(("pooler", "classifier", "tags"), ("a", "b"), "relu")),
            "no model with the heads classifier and tags",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()
