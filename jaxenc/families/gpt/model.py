"""GPT (Radford et al. 2018): a causal stack of post-LN layers without a norm on its embeddings, and with dropout on the tables."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import EncoderConfig, States, states
from jaxenc.families.gpt.vocabulary import published_gpt
from jaxenc.layers import cache as caches
from jaxenc.layers.attend import Visible
from jaxenc.layers.cache import Cache
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class GptConfig(EncoderConfig):
    """A GPT; the defaults are the published model. Raises UserError when a number does not fit.

    types: 0: there are no token types.
    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    dropout: dropout rate on the output of each sublayer and on the input of the head `classifier`. These are resid_pdrop and clf_pdrop of
        openai/finetune-transformer-lm train.py.
    table_dropout: dropout rate on the token and position tables, one draw a step, which the tied softmax sees too. The sum of the vectors
        has no dropout. transformers drops that sum, and not the tables.
    attention: `causal`: a token sees itself and those before it.
    """

    kind: ClassVar[str] = "gpt"
    types: ClassVar[int] = 0
    attentions: ClassVar[tuple[str, ...]] = ("causal",)
    head_names: ClassVar[tuple[str, ...]] = ("next_token", "last_token", "classifier")
    dropped_out: ClassVar[tuple[str, ...]] = ("classifier",)

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

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "model", self, "heads", "feed_forward", "positions")
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}: make it a multiple")
        if not 0 <= self.table_dropout < 1:
            raise UserError(f"model.table_dropout is {self.table_dropout}: it takes a rate from 0 up to but not including 1")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """GPT's layout, used when a recipe names no data."""
        return published_gpt(self.vocab_size)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Gpt":
        """The network, one for all heads. Raises UserError for a built-in head that GPT does not have."""
        self.check_heads(heads)
        return Gpt(self, execution)

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables. The original has one table for tokens and positions; here, as in transformers, there are two,
        and the softmax is over tokens alone."""
        shape = (self.vocab_size, self.width, self.positions, 0, 0)
        return EmbeddingsSpec(*shape, self.norm_epsilon, 0.0, self.initializer, self.table_dropout, norm=False)

    @property
    def block(self) -> BlockSpec:
        """The hyper-parameters of one layer."""
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, self.heads, self.feed_forward, self.activation, self.norm_epsilon, *rates, self.initializer)

    def empty_cache(self, execution: Execution, batch: int, places: int) -> tuple[Cache, ...]:
        """As `incremental.Incremental`."""
        return caches.empty(self.block, self.layers, batch, places, execution.policy.compute)


class Gpt(nn.Module):
    """The encoder: tables and a stack of post-LN layers. Heads are in `heads/`."""

    config: GptConfig
    execution: Execution

    @property
    def width(self) -> int:
        """Of the hidden states."""
        return self.config.width

    @property
    def table_width(self) -> int:
        """Of the tables."""
        return self.config.width

    @nn.compact
    def __call__(
        self,
        tokens: Array,
        types: Array,
        positions: Array,
        visible: Visible,
        noise: Keys | None,
        all_layers: bool = False,
        cache: tuple[Cache, ...] | None = None,
    ) -> States:
        """As `contract.Encoder.apply`; `types` is not read. The mask of the future comes with `visible` (`EncoderConfig.attended`)."""
        hidden, table = Embeddings(self.config.embeddings, self.execution, name="embeddings")(tokens, types, positions, noise)
        stack = Stack(self.config.block, self.config.layers, self.execution, name="encoder")
        return states(stack(hidden, visible, noise, all_layers, cache=cache), table, all_layers, cache is not None)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        return stack_flops(self.config.block, self.config.layers, length)
