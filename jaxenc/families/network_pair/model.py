"""A pair of any two encoders: a generator that replaces tokens and a discriminator that reads what it made."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

import numpy as np

from jaxenc.config import flatten, kinds, to_dict
from jaxenc.data.frames import Frame
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import Encoder, EncoderConfig, ModelConfig
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.network_pair.nested import SHARED, Nested, check_shared
from jaxenc.families.networks import Networks

GENERATOR = BertConfig(layers=12, width=256, heads=4, feed_forward=1024)


@dataclasses.dataclass(frozen=True)
class NetworkPairConfig(ModelConfig):
    """Two encoders with one vocabulary: a generator that replaces tokens and a discriminator that detects them. A trained pair is used as
    its discriminator, whose width and layers it has.

    generator: an encoder of any kind; the default has the size of ELECTRA-base's.
    discriminator: an encoder of any kind.
    sharing: parameters of the discriminator that the generator uses: `none`, `table` (of tokens) or `embeddings` (tables and norm).
        Gradients of both losses reach them.
    Raises UserError for models that are not encoders.
    """

    kind: ClassVar[str] = "pair"

    generator: EncoderConfig = dataclasses.field(default=GENERATOR, metadata=kinds("model"))
    discriminator: EncoderConfig = dataclasses.field(default=BertConfig(), metadata=kinds("model"))
    sharing: str = "none"

    def __post_init__(self) -> None:
        for name in ("generator", "discriminator"):
            model = getattr(self, name)
            if not isinstance(model, EncoderConfig):
                raise UserError(f"model.{name}.kind is {model.kind}", fix=f"a pair takes two encoders, such as {BertConfig.kind}")
        if self.sharing not in SHARED:
            raise UserError(f"model.sharing is {self.sharing!r}", fix=f"use {', '.join(SHARED)}")

    @property
    def of_generator(self) -> tuple[str, ...]:
        """As `networks.NetworkPair`."""
        return (*(f"model.generator.{path}" for path, _ in flatten(to_dict(self.generator))), "model.sharing")

    def networks(self, execution: Execution) -> Networks:
        """As `networks.NetworkPair`. Raises UserError for different vocabulary sizes, and for shared tables of different shapes."""
        for name in ("spare_rows", "vocab_size"):
            if getattr(self.generator, name) != getattr(self.discriminator, name):
                sizes = f"{getattr(self.generator, name)} and model.discriminator.{name} {getattr(self.discriminator, name)}"
                raise UserError(f"model.generator.{name} is {sizes}: both networks read the same tokens", fix="set them equal")
        generator = Nested(self.generator.encoder(("mlm",), execution), "generator", SHARED[self.sharing])
        discriminator = Nested(self.discriminator.encoder((), execution), "discriminator", ())
        check_shared(generator, discriminator)
        return Networks(generator, discriminator)

    def encoder(self, heads: Collection[str], execution: Execution) -> Encoder:
        """The discriminator. Raises UserError for a head that it does not have, such as `mlm`, which is the generator's."""
        self.discriminator.check_heads(heads)
        if "mlm" in heads:
            used = "mlm is the head of the generator of a pair, and the discriminator is what this objective uses"
            raise UserError(used, fix="set objective.kind to one that trains both networks, such as rtd, or leave the head out")
        return Nested(self.discriminator.encoder(heads, execution), "discriminator", ())

    def with_vocabulary(self, vocabulary: Vocabulary) -> "NetworkPairConfig":
        """As the contract says, for both networks."""
        generator, discriminator = (model.with_vocabulary(vocabulary) for model in (self.generator, self.discriminator))
        return dataclasses.replace(self, generator=generator, discriminator=discriminator)

    def with_spare_rows(self, count: int) -> "NetworkPairConfig":
        """As the contract says, for both networks."""
        generator, discriminator = (model.with_spare_rows(count) for model in (self.generator, self.discriminator))
        return dataclasses.replace(self, generator=generator, discriminator=discriminator)

    def positions_of(self, tokens: np.ndarray) -> np.ndarray:
        """As the contract says, those of the discriminator."""
        return self.discriminator.positions_of(tokens)

    @property
    def published_vocabulary(self) -> Vocabulary:
        """The discriminator's."""
        return self.discriminator.published_vocabulary

    @property
    def vocab_size(self) -> int:
        """The same in both networks."""
        return self.discriminator.vocab_size

    @property
    def spare_rows(self) -> int:
        """The same in both networks."""
        return self.discriminator.spare_rows

    @property
    def pools(self) -> str:
        """As the contract says, of the discriminator."""
        return self.discriminator.pools

    @property
    def answers(self) -> str:
        """As the contract says, of the discriminator."""
        return self.discriminator.answers

    @property
    def fine_tuning(self) -> Hyperparameters | None:
        """As the contract says, of the discriminator."""
        return self.discriminator.fine_tuning

    @property
    def head_names(self) -> tuple[str, ...]:
        """As the contract says, of the discriminator."""
        return self.discriminator.head_names

    @property
    def frame(self) -> Frame:
        """As the contract says, of the discriminator."""
        return self.discriminator.frame

    @property
    def context_first(self) -> bool:
        """As the contract says, of the discriminator."""
        return self.discriminator.context_first

    @property
    def attentions(self) -> tuple[str, ...]:
        """As the contract says, of the discriminator."""
        return self.discriminator.attentions

    @property
    def positions(self) -> int:
        """The smaller limit of both, 0 where neither has a limit."""
        return min((limit for limit in (self.generator.positions, self.discriminator.positions) if limit), default=0)

    @property
    def types(self) -> int:
        """The smaller number of token types of the two, 0 where neither has any."""
        return min((types for types in (self.generator.types, self.discriminator.types) if types), default=0)

    @property
    def attention_dropout(self) -> float:
        """The larger rate of both, since fused attention needs 0 in both."""
        return max(self.generator.attention_dropout, self.discriminator.attention_dropout)

    @property
    def width(self) -> int:
        """Of the discriminator."""
        return self.discriminator.width

    @property
    def layers(self) -> int:
        """Of the discriminator."""
        return self.discriminator.layers
