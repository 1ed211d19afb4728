"""XLNet (Yang et al. 2019): a Transformer-XL with a second stream of queries, which predict tokens that they do not see."""

import dataclasses
from collections.abc import Collection
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data.frames import CLS_LAST, Frame
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.hyperparameters import Hyperparameters
from jaxenc.families.states import States, states
from jaxenc.families.two_stream import Rows, TwoStreams
from jaxenc.families.xlnet.hyperparameters import XLNET
from jaxenc.families.xlnet.vocabulary import published_xlnet
from jaxenc.heads import ON_TEXTS, TUNED
from jaxenc.layers import attention_maps
from jaxenc.layers.dropout import dropout
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.relative import Context, Sight, sinusoids
from jaxenc.layers.stack import Stack
from jaxenc.layers.two_streams import StreamEmbeddings, TwoStreamBlock, of_query
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class XlnetConfig(EncoderConfig):
    """An XLNet; the defaults are XLNet-base. Raises UserError when a number does not fit.

    positions: 0: a text may be as long as memory allows.
    types: 5: first segment, second segment, CLS, SEP and padding. They have no table and are only compared (zihangdai/xlnet
        classifier_utils.py).
    heads: number of attention heads; it divides `width`.
    feed_forward: inner width of the feed-forward layers.
    clamp: distances beyond it count as this one; 0 = no limit, as published (their -1).
    activation: `gelu_tanh` is what zihangdai/xlnet was trained with; transformers runs `gelu_erf`.
    dropout: dropout rate on the embeddings, on the output of each sublayer and on the last layer. Also inside the feed-forward layers and
        on the sinusoids of distances.
    init: distribution of the initial weights: `truncated_normal` or `normal`. It includes the three biases of attention, but not the norms
        and the first vector of the query stream, which starts from Glorot's uniform rule.
    """

    kind: ClassVar[str] = "xlnet"
    positions: ClassVar[int] = 0
    types: ClassVar[int] = 5
    attentions: ClassVar[tuple[str, ...]] = ("full",)  # in training the permutation decides which tokens a token sees
    relative: ClassVar[bool] = True
    frame: ClassVar[Frame] = CLS_LAST
    context_first: ClassVar[bool] = True  # zihangdai/xlnet run_squad.py
    head_names: ClassVar[tuple[str, ...]] = ("lm", "summary", *TUNED, "beam_spans")
    pools: ClassVar[str] = "summary"
    answers: ClassVar[str] = "beam_spans"
    fine_tuning: ClassVar[Hyperparameters] = XLNET

    vocab_size: int = 32000
    width: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    clamp: int = 0
    activation: str = "gelu_tanh"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    init: str = "normal"
    init_scale: float = 0.02
    attention: str = "full"
    spare_rows: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, "model", self, "heads", "feed_forward")
        at_least(0, "model", self, "clamp")
        if self.width % self.heads:
            raise UserError(f"model.width {self.width} does not divide into model.heads {self.heads}", fix="make it a multiple")
        if self.width % 2:
            raise UserError(f"model.width is {self.width}", fix="it takes an even number, half of it sines and half cosines")

    @property
    def published_vocabulary(self) -> Vocabulary:
        """As the contract says: XLNet's layout."""
        return published_xlnet(self.pieces)

    def head_dropout(self, head: str) -> float:
        """`dropout` for heads on texts, whose summary has none; the last layer has its own, so heads on tokens need none."""
        return self.dropout if head in ON_TEXTS else 0.0

    def visible(self, segments: Array) -> Visible:
        """As the contract says, but by keys, which allows padding on either side: texts to classify have it on the left, texts with answers
        on the right."""
        return self.attended(Visible.by_keys(segments))

    def encoder(self, heads: Collection[str], execution: Execution) -> "XlnetEncoder":
        """As the contract says: the content stream alone, without memory."""
        self.check_heads(heads)
        return XlnetEncoder(self, execution)

    def two_streams(self, execution: Execution) -> "XlnetEncoder":
        """As `two_stream.TwoStream`."""
        return XlnetEncoder(self, execution)

    @property
    def block(self) -> BlockSpec:
        """The hyper-parameters of one layer."""
        rates = (self.dropout, self.attention_dropout)
        return BlockSpec(self.width, self.heads, self.feed_forward, self.activation, self.norm_epsilon, *rates, self.initializer)


class Xlnet(nn.Module):
    """The module of both streams. Heads are in `heads/`."""

    config: XlnetConfig
    execution: Execution

    @nn.compact
    def __call__(self, rows: Rows, noise: Keys | None, all_layers: bool = False) -> TwoStreams:
        """Runs both streams, with dropout on the last layer too. noise: the keys of dropout, None for evaluation.

        Gradients flow into the memory; a caller differentiates with respect to the parameters only.
        """
        config, query, memory = self.config, rows.query, rows.memory
        embeddings = StreamEmbeddings(config.vocab_size, config.block, self.execution, name="embeddings")
        pair, table = embeddings(rows.tokens, None if query is None else query.at, noise)
        own = None if memory is None else jnp.swapaxes(memory.states, 0, 1)
        stack = Stack(config.block, config.layers, self.execution, TwoStreamBlock, name="encoder")
        content, answers = stack(pair, _context(config, self.execution.policy.compute, rows, noise), noise, True, own)
        inputs = jnp.swapaxes(content[:-1], 0, 1)
        last = lambda states, noise: dropout(states[-1], config.dropout, noise, "final")
        if not all_layers:
            content, answers = last(content, noise), None if query is None else last(answers, of_query(noise))
        return TwoStreams(content, answers, inputs, table)

    def forward_flops(self, length: int, memory: int = 0, predictions: int = 0) -> float:
        """FLOPs of the matrix products on one row, forward, without the keys of distances, which all rows share."""
        width, keys = self.config.width, memory + length
        # For each query: query, output and feed-forward kernels, and the content, distance and value products with every key. For each key:
        # key and value kernels.
        place = 4.0 * width * (width + self.config.feed_forward) + 6.0 * keys * width
        return self.config.layers * ((length + predictions) * place + keys * 4.0 * width * width)


def _context(config: XlnetConfig, compute: jnp.dtype, rows: Rows, noise: Keys | None) -> Context:
    """The second input of every layer, besides the hidden states."""
    types, direction, memory, query = rows.types, rows.direction, rows.memory, rows.query
    length, before = types.shape[1], 0 if memory is None else memory.states.shape[2]
    real, labels = True, jnp.pad(types, ((0, 0), (before, 0)))
    if memory is not None:
        real = (jnp.arange(before + length) >= before - memory.filled[:, None])[:, None]
    table = sinusoids(before + length, length, config.width, config.clamp, direction is not None).astype(compute)
    # One dropout mask for all rows, as in Transformer-XL; zihangdai/xlnet draws one a row and so computes the keys of distances for each
    # row.
    shared = noise and dataclasses.replace(noise, rows=np.arange(len(table), dtype=np.uint32))
    table = dropout(table, config.dropout, shared, "distances")
    sight = lambda sees, own, at: Sight(sees & real, own[:, :, None] != labels[:, None], at)
    answers = None
    if query is not None:
        answers = sight(query.sees, jnp.take_along_axis(types, query.at, axis=1), query.at)
    return Context(table, None if direction is None else direction < 0, sight(rows.sees, types, None), answers)


@dataclasses.dataclass(frozen=True)
class XlnetEncoder:
    """A `two_stream.TwoStreamEncoder`. As an encoder it reads forward and without memory; a place sees all visible places and itself."""

    config: XlnetConfig
    execution: Execution

    @property
    def width(self) -> int:
        """Of the hidden states."""
        return self.config.width

    @property
    def table_width(self) -> int:
        """Of the token table."""
        return self.config.width

    @property
    def module(self) -> Xlnet:
        """The module of both streams, which uses the same parameters."""
        return Xlnet(self.config, self.execution)

    def apply(
        self, variables: Tree, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None, all_layers: bool = False
    ) -> States:
        """As `contract.Encoder`; `positions` is not read, only distances are."""
        streams = self.module.apply(variables, _rows(tokens, types, visible), noise, all_layers)
        return states(streams.content, streams.table, all_layers)

    def attention_maps(self, params: Tree, tokens: Array, types: Array, positions: Array, visible: Visible) -> Array:
        """As `attentive.Attentive`, of the content stream."""
        return attention_maps.computed(self.module, params, _rows(tokens, types, visible), None)

    def lazy_init(self, key: Array, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None) -> Tree:
        """As `contract.Encoder`."""
        sees = jax.ShapeDtypeStruct((*tokens.shape, tokens.shape[1]), jnp.bool_)
        return self.module.lazy_init(key, Rows(tokens, types, sees), noise)

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        return self.module.forward_flops(length)

    def streams(self, params: Tree, rows: Rows, noise: Keys | None) -> TwoStreams:
        """As `two_stream.TwoStreamEncoder`."""
        return self.module.apply({"params": params}, rows, noise)

    def streams_flops(self, length: int, memory: int, predictions: int) -> float:
        """As `two_stream.TwoStreamEncoder`, without the keys of distances, which all rows share."""
        return self.module.forward_flops(length, memory, predictions)


def _rows(tokens: Array, types: Array, visible: Visible) -> Rows:
    """Rows in which each place sees itself and what `visible` allows."""
    return Rows(tokens, types, visible.pairs(tokens.shape[1]) | jnp.eye(tokens.shape[1], dtype=bool))
