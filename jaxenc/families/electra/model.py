"""ELECTRA (Clark et al. 2020): two BERT encoders that share their tables. The smaller one, the generator, replaces tokens; the
discriminator detects them."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.bert.vocabulary import published_bert
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.electra.hyperparameters import ELECTRA
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.networks import Networks
from jaxenc.families.states import States, states
from jaxenc.layers import attention_maps
from jaxenc.layers import cache as caches
from jaxenc.layers.cache import Cache
from jaxenc.layers.dense import Dense
from jaxenc.layers.embeddings import Embeddings, EmbeddingsSpec
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.initializers import glorot_uniform
from jaxenc.layers.stack import Stack, stack_flops
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# Hidden states [batch, length, embedding] and the token table; tokens, types and positions, i32 [batch, length].
Embedded = tuple[Array, Array]
Inputs = tuple[Array, Array, Array]
NETWORKS = ("generator", "discriminator")
SHARING = ("embeddings", "none")


@dataclasses.dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """An ELECTRA pair; the defaults are ELECTRA-base. Raises UserError when a number does not fit.

    Fields that name neither the generator nor the tables are the discriminator's.

    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    embedding: width of the tables; a network of another width has a dense layer (`project`) after them.
    generator_width: width of the generator's hidden states, a quarter or a third of `width` as published.
    generator_layers: number of the generator's layers, as many as the discriminator's as published.
    generator_heads: number of the generator's attention heads.
    generator_feed_forward: inner width of the generator's feed-forward layers.
    sharing: `embeddings`: the networks share their tables, as published; `none`: the generator has its own. They share one token, position
        and type table and one norm after them (google-research/electra:model/modeling.py), where the paper speaks of token and position
        embeddings. The generator's own are `embedding` wide too.
    activation: `gelu_erf` is what google-research/electra was trained with and what transformers runs.
    init: distribution of the initial weights: `truncated_normal` or `normal`. Of all kernels and tables but `project` and the last layer of
        the replaced-token head, which start from Glorot's uniform draws as in google-research/electra.
    """

    kind: ClassVar[str] = "electra"
    head_names: ClassVar[tuple[str, ...]] = (*EncoderConfig.head_names, "first_token", "joint_spans")
    pools: ClassVar[str] = "first_token"
    answers: ClassVar[str] = "joint_spans"
    fine_tuning: ClassVar[Hyperparameters] = ELECTRA
    of_generator: ClassVar[tuple[str, ...]] = (
        *(f"model.generator_{name}" for name in ("width", "layers", "heads", "feed_forward")),
        "model.sharing",
    )

    vocab_size: int = 30522
    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    embedding: int = 768
    generator_width: int = 256
    generator_layers: int = 12
    generator_heads: int = 4
    generator_feed_forward: int = 1024
    sharing: str = "embeddings"
    positions: int = 512
    types: int = 2
    activation: str = "gelu_erf"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    init: str = "truncated_normal"
    init_scale: float = 0.02
    attention: str = "full"
    spare_rows: int = 0

    def __post_init__(self) -> None:
        at_least(1, "model", self, "heads", "feed_forward", "embedding", "positions")
        super().__post_init__()
        at_least(1, "model", self, "generator_width", "generator_layers", "generator_heads", "generator_feed_forward")
        for part in ("", "generator_"):
            width, heads = getattr(self, f"{part}width"), getattr(self, f"{part}heads")
            if width % heads:
                raise UserError(f"model.{part}width {width} does not divide into model.{part}heads {heads}", fix="make it a multiple")
        if self.sharing not in SHARING:
            raise UserError(f"model.sharing is {self.sharing!r}", fix=f"use {' or '.join(SHARING)}")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """As the contract says: BERT's layout."""
        return published_bert(self.pieces)

    def head_dropout(self, head: str) -> float:
        """As the contract says; the head that transformers gives it has dropout before its dense layer, our pooler, too
        (modeling_electra.py, ElectraClassificationHead)."""
        return self.dropout if head == "pooler" else super().head_dropout(head)

    def encoder(self, heads: Collection[str], execution: Execution) -> "Electra":
        """The generator for the head `mlm`, the discriminator for any other heads and for none.

        Raises UserError for heads of both networks, for a generator without the discriminator where they share no tables, and for a
        built-in head that ELECTRA does not have.
        """
        self.check_heads(heads)
        if "mlm" in heads and len(heads) > 1:
            others = ", ".join(name for name in heads if name != "mlm")
            raise UserError(f"mlm is the head of ELECTRA's generator and {others} of its discriminator", fix="name heads of one of the two")
        if "mlm" in heads and self.sharing != "embeddings":
            advice = "set it to embeddings, or convert the generator's folder that `jaxenc export` writes"
            raise UserError(f"model.sharing is {self.sharing}: a generator alone has one set of tables", fix=advice)
        return Electra(self, "generator" if "mlm" in heads else "discriminator", execution)

    def networks(self, execution: Execution) -> Networks:
        """As `networks.NetworkPair`."""
        return Networks(*(Electra(self, network, execution) for network in NETWORKS))

    @property
    def embeddings(self) -> EmbeddingsSpec:
        """The hyper-parameters of the tables, the same for both networks."""
        shape = (self.vocab_size, self.embedding, self.positions, 0, self.types)
        return EmbeddingsSpec(*shape, self.norm_epsilon, self.dropout, self.initializer)

    def depth(self, network: str) -> int:
        """The number of layers of `network`, `generator` or `discriminator`."""
        return self.generator_layers if network == "generator" else self.layers

    def block(self, network: str) -> BlockSpec:
        """The hyper-parameters of one layer of `network`, `generator` or `discriminator`."""
        shape = (self.width, self.heads, self.feed_forward)
        if network == "generator":
            shape = (self.generator_width, self.generator_heads, self.generator_feed_forward)
        return BlockSpec(*shape, self.activation, self.norm_epsilon, self.dropout, self.attention_dropout, self.initializer)

    def empty_cache(self, execution: Execution, batch: int, places: int) -> tuple[Cache, ...]:
        """As `incremental.Incremental`."""
        return caches.empty(self.block("discriminator"), self.layers, batch, places, execution.policy.compute)


class Body(nn.Module):
    """The part of a network that is not shared: a dense layer from the width of the tables to its own where they differ, the layers, and
    the tables where it shares none."""

    config: ElectraConfig
    network: str
    execution: Execution

    @nn.compact
    def __call__(
        self,
        embedded: Embedded | None,
        rows: Inputs,
        visible: Visible,
        noise: Keys | None,
        all_layers: bool,
        cache: tuple[Cache, ...] | None,
    ) -> States:
        """embedded: the output of the shared tables, None where the network has its own. rows: tokens, types, positions."""
        config, block = self.config, self.config.block(self.network)
        if embedded is None:
            embedded = Embeddings(config.embeddings, self.execution, name="embeddings")(*rows, noise)
        hidden, table = embedded
        if config.embedding != block.width:
            hidden = Dense(block.width, ("embed", "norm"), glorot_uniform, self.execution, name="project")(hidden)
        stack = Stack(block, config.depth(self.network), self.execution, name="encoder")
        return states(stack(hidden, visible, noise, all_layers, cache=cache), table, all_layers, cache is not None)


class Electra(nn.Module):
    """One network of the pair, `network` = `generator` or `discriminator`, a `contract.Encoder`.

    Parameters: `embeddings`, which both networks read, and the rest under the network's name (`discriminator/encoder/layer_00/...`);
    with `sharing` none the generator's tables are `generator/embeddings`. Heads are in `heads/`.
    """

    config: ElectraConfig
    network: str
    execution: Execution

    @property
    def width(self) -> int:
        """Of the network's hidden states."""
        return self.config.block(self.network).width

    @property
    def table_width(self) -> int:
        """Of the tables."""
        return self.config.embedding

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
        """As `contract.Encoder.apply`; the two networks draw independently from the same `noise`."""
        config = self.config
        if self.network not in NETWORKS:
            raise ValueError(f"network {self.network!r} is not one of {', '.join(NETWORKS)}")
        noise = noise and noise.apart(self.network)
        rows, embedded = (tokens, types, positions), None
        if self.network == "discriminator" or config.sharing == "embeddings":
            embedded = Embeddings(config.embeddings, self.execution, name="embeddings")(*rows, noise)
        return Body(config, self.network, self.execution, name=self.network)(embedded, rows, visible, noise, all_layers, cache)

    def attention_maps(self, params: Tree, tokens: Array, types: Array, positions: Array, visible: Visible) -> Array:
        """As `attentive.Attentive`."""
        return attention_maps.computed(self, params, tokens, types, positions, visible, None)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        config, block = self.config, self.config.block(self.network)
        project = 2.0 * length * config.embedding * block.width if config.embedding != block.width else 0.0
        return project + stack_flops(block, config.depth(self.network), length)
