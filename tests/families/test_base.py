"""The contract of a model's config holds for a family that counts no positions and has no types, as ELMo does."""

import dataclasses
from typing import ClassVar

import numpy as np

from jaxenc import config
from jaxenc.convert import parity
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary, unnamed
from jaxenc.families import MODELS
from jaxenc.families.contract import ModelConfig
from jaxenc.training.run import Run


@dataclasses.dataclass(frozen=True)
class Recurrent(ModelConfig):
    kind: ClassVar[str] = "recurrent"
    positions: ClassVar[int] = 0
    types: ClassVar[int] = 0
    attention_dropout: ClassVar[float] = 0.0

    vocab_size: int = 50
    width: int = 8
    layers: int = 2

    @property
    def published_vocabulary(self) -> Vocabulary:
        return unnamed(self.vocab_size)

    def with_vocabulary(self, vocabulary: Vocabulary) -> "Recurrent":
        return dataclasses.replace(self, vocab_size=vocabulary.size)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        return np.zeros_like(tokens)


def test_a_model_without_a_limit_takes_rows_of_any_length() -> None:
    run = Run(model=Recurrent(), data=DataConfig(length=5000))
    assert run.plan[0].length == 5000
    assert run.with_vocabulary(unnamed(70)).model == Recurrent(vocab_size=70)
    assert run.execution("cpu", 5000).attention == "xla"
    rows = parity.probe(run, pad=0, padding="right")
    assert rows["tokens"].shape[1] == parity.LONGEST and not rows["types"].any()


def test_every_model_fills_the_contract() -> None:
    for kind, cls in MODELS.items():
        assert issubclass(cls, ModelConfig) and cls.kind == kind
        assert "vocab_size" in {path.split(".")[-1] for path, _ in config.flatten(config.to_dict(cls()))}
        assert all(hasattr(cls(), name) for name in ModelConfig.__annotations__)
