"""A pair of any two encoders: a generator that replaces tokens and a discriminator that reads what it made."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

import numpy as np

from jaxenc.config import flatten, kinds, to_dict
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import Encoder, EncoderConfig, ModelConfig
from jaxenc.families.network_pair.nested import SHARED, Nested, check_shared
from jaxenc.families.networks import Networks

GENERATOR = BertConfig(layers=12, width=256, heads=4, feed_forward=1024)


@dataclasses.dataclass(frozen=True)
class NetworkPairConfig(ModelConfig):
    """Two models with one vocabulary, the first of which replaces tokens for the second to notice. In use it is the second, the
    discriminator, and the pair has that one's width and layers.

    generator: model of any kind that is an encoder; the default has the sizes of ELECTRA-base's.
    discriminator: model of any kind that is an encoder.
    sharing: what the generator takes of the discriminator's parameters: `none`, `table` (of tokens) or `embeddings` (all of these). The
        gradients of both losses reach it.
    Raises UserError for models that are no encoders.
    """

    kind: ClassVar[str] = "pair"

    generator: EncoderConfig = dataclasses.field(default=GENERATOR, metadata=kinds("model"))
    discriminator: EncoderConfig = dataclasses.field(default=BertConfig(), metadata=kinds("model"))
    sharing: str = "none"

    def __post_init__(self) -> None:
        for name in ("generator", "discriminator"):
            model = getattr(self, name)
            if not isinstance(model, EncoderConfig):
                raise UserError(f"model.{name}.kind is {model.kind}: a pair takes two encoders, such as {BertConfig.kind}")
        if self.sharing not in SHARED:
            raise UserError(f"model.sharing is {self.sharing!r}: use {', '.join(SHARED)}")

    @property
    def of_generator(self) -> tuple[str, ...]:
        """As `networks.Pair`."""
        return (*(f"model.generator.{path}" for path, _ in flatten(to_dict(self.generator))), "model.sharing")

    def networks(self, execution: Execution) -> Networks:
        """As `networks.Pair`. Raises UserError for two vocabularies, and for tables of two shapes that are to be one."""
        if self.generator.vocab_size != self.discriminator.vocab_size:
            sizes = f"{self.generator.vocab_size} and model.discriminator.vocab_size {self.discriminator.vocab_size}"
            raise UserError(f"model.generator.vocab_size is {sizes}: both networks read the same tokens, so give them one number")
        generator = Nested(self.generator.encoder(("mlm",), execution), "generator", SHARED[self.sharing])
        discriminator = Nested(self.discriminator.encoder((), execution), "discriminator", ())
        check_shared(generator, discriminator)
        return Networks(generator, discriminator)

    def encoder(self, heads: Collection[str], execution: Execution) -> Encoder:
        """The discriminator. Raises UserError for a head that it does not have; `mlm` is the generator's."""
        self.discriminator.check_heads(heads)
        if "mlm" in heads:
            used = "mlm is the head of the generator of a pair, and the discriminator is what this objective uses"
            raise UserError(f"{used}: set objective.kind to one that trains both networks, such as rtd, or leave the head out")
        return Nested(self.discriminator.encoder(heads, execution), "discriminator", ())

    def with_vocabulary(self, vocabulary: Vocabulary) -> "NetworkPairConfig":
        """This pair for a tokenizer, which both networks have."""
        generator, discriminator = (model.with_vocabulary(vocabulary) for model in (self.generator, self.discriminator))
        return dataclasses.replace(self, generator=generator, discriminator=discriminator)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """As the discriminator counts them."""
        return self.discriminator.positions_of(tokens)

    @property
    def published_vocabulary(self) -> Vocabulary:
        """The discriminator's."""
        return self.discriminator.published_vocabulary

    @property
    def vocab_size(self) -> int:
        """Of both networks."""
        return self.discriminator.vocab_size

    @property
    def positions(self) -> int:
        """The longest text in tokens that both take, 0 where neither has a limit."""
        return min((limit for limit in (self.generator.positions, self.discriminator.positions) if limit), default=0)

    @property
    def types(self) -> int:
        """The token types that both know, 0 where neither has any."""
        return min((types for types in (self.generator.types, self.discriminator.types) if types), default=0)

    @property
    def attention_dropout(self) -> float:
        """The larger rate: fused attention has none."""
        return max(self.generator.attention_dropout, self.discriminator.attention_dropout)

    @property
    def width(self) -> int:
        """Of the discriminator, as all that follows."""
        return self.discriminator.width

    @property
    def layers(self) -> int:
        """Of the discriminator."""
        return self.discriminator.layers
