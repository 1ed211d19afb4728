"""ELMo (Peters et al. 2018): two stacks of LSTMs, one forward and one backward, over words that are read by their characters."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.config import at_least
from jaxenc.data import characters as character_ids
from jaxenc.data.vocabulary import Vocabulary, of_words, padded
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.both_directions import DIRECTIONS, Both, Read
from jaxenc.families.contract import ModelConfig
from jaxenc.layers.char_cnn import CharCnn, CharCnnSpec
from jaxenc.layers.dropout import dropout
from jaxenc.layers.embed import Embed
from jaxenc.layers.initializers import Uniform, leading_rows
from jaxenc.layers.lstm import Lstm
from jaxenc.layers.recurrence import LstmSpec, LstmState, LstmWeights, line_on, side_by_side
from jaxenc.layers.stack import layer_name
from jaxenc.rng import Keys
from jaxenc.tree import Tree

INPUTS = ("characters", "tokens")
ACTIVATIONS = ("relu", "tanh")


@dataclasses.dataclass(frozen=True)
class ElmoConfig(ModelConfig):
    """An ELMo; the defaults are the original's (bin/train_elmo.py of allenai/bilm-tf). Raises UserError when a number does not fit.

    vocab_size: number of words that are predicted, sorted by falling frequency; the data's tokenizer decides it.
    input: how a word is read: `characters`, by its bytes, or `tokens`, by a row of a table.
    words: with `input` tokens, number of ids that the table has a row for; 0 = `vocab_size`.
    width: width of the input and output of each layer, in each direction.
    cells: number of memory cells of an LSTM layer.
    character_width: width of a character's vector.
    filter_widths: how many characters each convolution reads at once.
    filters: how many filters each convolution has.
    activation: of the filters, `relu` or `tanh`.
    highways: number of highway layers after the convolutions.
    cell_clip: largest magnitude of a memory cell; 0 = no limit.
    projection_clip: largest magnitude of an LSTM's output; 0 = no limit.
    residual: every layer but the first adds its input to its output.
    dropout: dropout rate on the input of each layer, before its residual connection, and on the last output.
    forget_bias: added to the forget gate at run time.
    """

    kind: ClassVar[str] = "elmo"
    positions: ClassVar[int] = 0
    types: ClassVar[int] = 0
    attention_dropout: ClassVar[float] = 0.0

    vocab_size: int = 793_471
    input: str = "characters"
    words: int = 0
    width: int = 512
    cells: int = 4096
    layers: int = 2
    character_width: int = 16
    filter_widths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    filters: tuple[int, ...] = (32, 32, 64, 128, 256, 512, 1024)
    activation: str = "relu"
    highways: int = 2
    cell_clip: float = 3.0
    projection_clip: float = 3.0
    residual: bool = True
    dropout: float = 0.1
    forget_bias: float = 1.0

    def __post_init__(self) -> None:
        at_least(1, "model", self, "vocab_size", "width", "cells", "layers", "character_width", "filter_widths", "filters")
        at_least(0, "model", self, "words", "highways", "cell_clip", "projection_clip")
        for name, choices in (("input", INPUTS), ("activation", ACTIVATIONS)):
            if getattr(self, name) not in choices:
                raise UserError(f"model.{name} is {getattr(self, name)!r}", fix=f"use {' or '.join(choices)}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"model.dropout is {self.dropout}", fix="it takes a rate from 0 up to but not including 1")
        if len(self.filters) != len(self.filter_widths) or not self.filters:
            raise UserError(
                f"model.filters is {self.filters} and model.filter_widths {self.filter_widths}", fix="give each width one number"
            )
        if max(self.filter_widths) > character_ids.WIDTH:
            raise UserError(f"model.filter_widths is {self.filter_widths}", fix=f"a word has {character_ids.WIDTH} characters, use no more")
        if self.words and self.words < self.vocab_size:
            raise UserError(
                f"model.words is {self.words} and model.vocab_size {self.vocab_size}",
                fix="set model.words to at least model.vocab_size: every predicted word is read too",
            )

    @property
    def unused(self) -> dict[str, str]:
        """See `Run.unused`."""
        out = dict.fromkeys(("train.attention", "train.remat", "train.scan"), "model.kind=elmo has no layers of attention")
        if not self.reads_characters:
            of_words = [f"model.{name}" for name in ("character_width", "filter_widths", "filters", "activation", "highways")]
            out |= dict.fromkeys(of_words, "model.input=tokens reads no characters")
        return out

    @property
    def published_vocabulary(self) -> Vocabulary:
        """As the contract says: ELMo's layout."""
        return dataclasses.replace(of_words(self.vocab_size), words=self.words)

    def with_vocabulary(self, vocabulary: Vocabulary) -> "ElmoConfig":
        """As the contract says, with the number of words that are read too."""
        return dataclasses.replace(self, vocab_size=vocabulary.size, words=vocabulary.words)

    @property
    def inputs(self) -> Mapping[str, int]:
        """As the contract says: words by their characters or by their ids."""
        words = {"characters": character_ids.SIZE} if self.reads_characters else {"tokens": self.words or self.vocab_size}
        return {**words, "segments": 0}

    @property
    def reads_characters(self) -> bool:
        """Whether words are read by the batch field `characters` instead of `tokens`."""
        return self.input == "characters"

    def readers(self, execution: Execution) -> "Elmo":
        """As `both_directions.BothDirections`."""
        return Elmo(self, execution)

    @property
    def lstm(self) -> LstmSpec:
        """The hyper-parameters of one layer of one direction."""
        return LstmSpec(**{field.name: getattr(self, field.name) for field in dataclasses.fields(LstmSpec)})

    @property
    def char_cnn(self) -> CharCnnSpec:
        """The hyper-parameters of the network over characters."""
        return CharCnnSpec(**{field.name: getattr(self, field.name) for field in dataclasses.fields(CharCnnSpec)})


class Elmo(nn.Module):
    """The module of both directions. The softmax is `layers.softmax.Softmax`."""

    config: ElmoConfig
    execution: Execution

    def setup(self) -> None:
        """The submodules, by their keys in the parameter tree."""
        config, execution = self.config, self.execution
        if config.reads_characters:
            self.char_cnn = CharCnn(config.char_cnn, execution)
        elif config.words:
            self.word = Embed(config.words, config.width, ("vocab", "table_embed"), Uniform(1.0), execution)
        else:
            init = leading_rows(Uniform(1.0), config.vocab_size)
            self.token = Embed(padded(config.vocab_size), config.width, ("vocab", "table_embed"), init, execution)
        self.forward = Layers(config, execution)
        self.backward = Layers(config, execution)

    def start(self, key: Array) -> Tree:
        """The initial parameters, boxed with their axis names; key: one typed key."""
        ids = lambda *axes: jax.ShapeDtypeStruct((1, 1, *axes), jnp.int32)
        one = Read(ids(), ids(character_ids.WIDTH), None)
        return self.lazy_init(key, one, one, jax.eval_shape(lambda: self.zero_state(1)), None)["params"]

    def __call__(self, forward: Read, backward: Read, state: Tree, noise: Keys | None, all_layers: bool = False) -> tuple[Both, Tree]:
        """(outputs of both directions in the compute dtype, the state after the last step).

        forward and backward may be different words. state: as from `zero_state`. noise: the keys of dropout, None for evaluation.
        all_layers: return all layers, without dropout on the last. Gradients flow into the state; a caller differentiates with respect to
        the parameters only.
        """
        both = lambda one, other: jax.tree.map(lambda *pair: jnp.stack(pair), one, other)
        reads = both(forward, backward)
        return self.read(self.embed(reads.tokens, reads.characters), reads.real, state, noise, all_layers)

    def embed(self, tokens: Array, characters: Array | None) -> Array:
        """The context-free vector of each word, [..., width] in the compute dtype, from tokens i32 [...] or characters [..., 50]."""
        if self.config.reads_characters:
            return self.char_cnn(characters)
        table = self.word if self.config.words else self.token
        return table(tokens).astype(self.execution.policy.compute)

    def read(self, x: Array, real: Array | None, state: Tree, noise: Keys | None, all_layers: bool = False) -> tuple[Both, Tree]:
        """As `__call__`, from the vectors of words: x [2, batch, length, width], real [2, batch, length], forward first."""
        config = self.config
        noises = (noise, noise and noise.apart("backward"))
        drop = lambda x, site, layer: jnp.stack([dropout(x[at], config.dropout, noises[at], site, layer) for at in range(2)])
        states, after = [x], []
        weights = jax.tree.map(lambda *pair: jnp.stack(pair), self.forward(), self.backward())
        for layer in range(config.layers):
            x = drop(states[-1], "lstm_input", layer)
            before = jax.tree.map(lambda *pair, layer=layer: jnp.stack([leaf[:, layer] for leaf in pair]), *_pair(state))
            y, kept = side_by_side(config.lstm, line_on(self.execution.platform), weights[layer], x, real, before)
            states.append(y + x if config.residual and layer else y)
            after.append(kept)
        out = jnp.stack(states, axis=1) if all_layers else drop(states[-1], "final", 0)
        stacked = jax.tree.map(lambda *layers: jnp.stack(layers, axis=2), *after)
        return Both(*out), {name: jax.tree.map(lambda leaf, at=at: leaf[at], stacked) for at, name in enumerate(DIRECTIONS)}

    def text(self, params: Tree, tokens: Array, characters: Array | None, segments: Array, state: Tree | None = None) -> tuple[Array, Tree]:
        """(hidden [layers + 1, batch, length, 2 · width], forward and backward concatenated, in the order of the text; the state after it).

        tokens: i32 [batch, length], one text a row, between <S> and </S>; characters: uint16 [batch, length, 50] for a model that reads
        them. segments: i32 [batch, length], 0 = padding at any place: it keeps the state, so the backward direction starts at the last
        token of each row, and its output is zeros. Layer 0 is the vector of the word, twice (bilm/model.py). state: None for zeros.
        """
        real = segments > 0
        apply = lambda *inputs, method: self.apply({"params": params}, *inputs, method=method)
        words = jnp.where(real[..., None], apply(tokens, characters, method="embed"), 0)
        state = self.zero_state(len(segments)) if state is None else state
        pair, real = (jnp.stack([array, jnp.flip(array, axis=1)]) for array in (words, real))
        both, state = apply(pair, real, state, None, True, method="read")
        return jnp.concatenate([both.forward, jnp.flip(both.backward, axis=2)], axis=-1), state

    def zero_state(self, batch: int) -> Tree:
        """{"forward", "backward"} of LstmState with an axis of layers: cell [batch, layers, cells], hidden [batch, layers, width]."""
        config, compute = self.config, self.execution.policy.compute
        zeros = lambda size: jnp.zeros((batch, config.layers, size), compute)
        return {name: LstmState(zeros(config.cells), zeros(config.width)) for name in DIRECTIONS}

    def forward_flops(self, length: int) -> float:
        """FLOPs of the matrix products on one row of `length` words in each direction, forward; a multiply-add counts as two."""
        config = self.config
        layer = 2.0 * (2 * config.width * 4 * config.cells + config.cells * config.width)
        word = config.char_cnn.forward_flops() if config.reads_characters else 0.0
        return 2 * length * (config.layers * layer + word)


class Layers(nn.Module):
    """The parameters of the layers of one direction."""

    config: ElmoConfig
    execution: Execution

    @nn.compact
    def __call__(self) -> list[LstmWeights]:
        """The weights of each layer; the inputs of a layer are as wide as its outputs."""
        config = self.config
        return [Lstm(config.lstm, self.execution, name=layer_name(layer)).weights(config.width) for layer in range(config.layers)]


def _pair(state: Tree) -> tuple[LstmState, LstmState]:
    return tuple(state[name] for name in DIRECTIONS)
