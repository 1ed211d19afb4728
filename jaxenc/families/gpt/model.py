"""GPT (Radford et al. 2018): a causal stack of post-LN layers without a norm on its embeddings, and with dropout on the tables."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from jaxenc.data.frames import Frame
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.gpt.hyperparameters import GPT
from jaxenc.families.gpt.vocabulary import published_gpt
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.stacked import StackedConfig
from jaxenc.heads import ON_TEXTS
from jaxenc.layers.embeddings import EmbeddingsSpec


@dataclasses.dataclass(frozen=True)
class GptConfig(StackedConfig):
    """A GPT; the defaults are the published model. Raises UserError when a number does not fit.

    types: 0: there are no token types.
    dropout: dropout rate on the output of each sublayer and on the input of heads on texts. These are resid_pdrop and clf_pdrop of
        openai/finetune-transformer-lm train.py.
    table_dropout: dropout rate on the token and position tables, one draw a step, which the tied softmax sees too. The sum of the vectors
        has no dropout. transformers drops that sum, and not the tables.
    attention: `causal`: a token sees itself and those before it.
    """

    kind: ClassVar[str] = "gpt"
    types: ClassVar[int] = 0
    frame: ClassVar[Frame] = Frame(fallback=("_start_", "_delimiter_", "_classify_"))  # openai/finetune-transformer-lm train.py
    attentions: ClassVar[tuple[str, ...]] = ("causal",)
    head_names: ClassVar[tuple[str, ...]] = ("next_token", "last_token", *ON_TEXTS)
    pools: ClassVar[str] = "last_token"
    answers: ClassVar[str] = ""
    beside: ClassVar[Mapping[str, float]] = MappingProxyType({"next_token": 0.5})  # lm_coef of openai/finetune-transformer-lm train.py
    fine_tuning: ClassVar[Hyperparameters] = GPT

    vocab_size: int = 40478
    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 512
    activation: str = "gelu_tanh"
    norm_epsilon: float = 1e-5
    dropout: float = 0.1
    table_dropout: float = 0.1
    attention_dropout: float = 0.1
    init: str = "normal"
    init_scale: float = 0.02
    attention: str = "causal"
    spare_rows: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.table_dropout < 1:
            raise UserError(f"model.table_dropout is {self.table_dropout}", fix="it takes a rate from 0 up to but not including 1")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """GPT's layout, used when a recipe names no data."""
        return published_gpt(self.pieces)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables. The original has one table for tokens and positions; here, as in transformers, there are two,
        and the softmax is over tokens alone."""
        shape = (self.vocab_size, self.width, self.positions, 0, 0)
        return EmbeddingsSpec(*shape, self.norm_epsilon, 0.0, self.initializer, self.table_dropout, norm=False)
