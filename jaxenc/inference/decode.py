"""Autoregressive decoding with a cache of keys and values: one compiled function for the prompts of a batch, one for each new token."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import families, rng
from jaxenc.data.vocabulary import Vocabulary, padded
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder
from jaxenc.families.incremental import Incremental
from jaxenc.heads.contract import Fitted
from jaxenc.heads.next_token import NEXT_TOKEN
from jaxenc.inference import sampling
from jaxenc.inference.inputs import SHORTEST, power_of_two
from jaxenc.inference.sampling import Sampling
from jaxenc.layers.cache import Cache
from jaxenc.layers.visible import Visible
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective
from jaxenc.tree import Tree

# Texts that are decoded at a time. A step reads every weight once, which takes longer than computing a few more rows.
ROWS = 8
# Why a continuation ended: at a token that ends texts, after the requested number of tokens, at the model's last position.
END, MAX_NEW, POSITIONS = "end", "max_new", "positions"


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A text to continue. ids: its tokens, at least one; number, sample: of the prompt and of its sample, which select the random draws."""

    ids: Sequence[int]
    number: int
    sample: int


@dataclasses.dataclass(frozen=True)
class Generated:
    """ids: the new tokens, without the one that ends the text; finish_reason: END, MAX_NEW or POSITIONS."""

    ids: tuple[int, ...]
    finish_reason: str


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SamplingInputs:
    """What the draws of a batch depend on. seed: u32; temperature: float32, None for the most probable token; numbers, samples: u32
    [batch], as in `Prompt`."""

    seed: np.ndarray
    temperature: np.ndarray | None
    numbers: np.ndarray
    samples: np.ndarray


def of(objective: Objective, vocabulary: Vocabulary) -> "Decoder":
    """The decoder of an objective with the head `next_token`. Raises UserError for one without it, for a model whose attention is not
    causal, and for a kind of model that takes no cache."""
    head = objective.heads.get(NEXT_TOKEN.name)
    # An objective with this head has the encoder that the head reads.
    if head is None or objective.encoder.config.attention != "causal":
        what = "this model does not predict the next token from the tokens before it, so it cannot complete texts"
        raise UserError(what, fix="use one that was trained with objective.kind=causal, such as the recipe gpt/small")
    families.able(objective.encoder.config, Incremental, "complete takes a model with a cache of keys and values")
    allowed = sampling.allowed_tokens(vocabulary, padded(objective.encoder.config.vocab_size))
    return Decoder(objective.encoder, head, allowed, sampling.end_tokens(vocabulary))


@dataclasses.dataclass(frozen=True, eq=False)
class Decoder:
    """Continues texts with a causal model. allowed: bool [padded vocabulary], the tokens that may be generated; ends: those that end a
    text."""

    encoder: Encoder
    head: Fitted
    allowed: np.ndarray
    ends: frozenset[int]

    @property
    def positions(self) -> int:
        """The most tokens of a text, 0 for no limit."""
        return self.encoder.config.positions

    def empty(self, batch: int, places: int) -> tuple[Cache, ...]:
        """A cache for `batch` texts of at most `places` tokens."""
        return self.encoder.config.empty_cache(self.encoder.execution, batch, places)

    def extend(self, params: Tree, cache: tuple[Cache, ...], tokens: Array, places: Array, last: Array) -> tuple[Array, tuple[Cache, ...]]:
        """(logits of the token after column last[row] of each row, float32 [batch, padded vocabulary]; the cache with these tokens); pure.

        tokens: i32 [batch, n] at `places` i32 [batch, n] of their texts; each attends to those before it, here and in the cache. Padding
        comes after the real tokens, so that later tokens overwrite it before any token attends to it. last: i32 [batch].
        """
        visible = self.encoder.config.attended(Visible.by_places(places))
        with jax.default_matmul_precision("highest"):
            given = (tokens, jnp.zeros_like(tokens), places, visible, None, False, cache)
            states = self.encoder.apply({"params": params}, *given)
            hidden = jnp.take_along_axis(states.last, last[:, None, None], axis=1)[:, 0]
            return encoders.apply(self.head, params, hidden, states.table).astype(jnp.float32), states.cache

    def generate(self, params: Tree, prompts: Sequence[Prompt], max_new: int, rule: Sampling) -> list[Generated]:
        """The continuation of each prompt, in order. Every prompt must be shorter than `positions`.

        Batches have ROWS rows and a shape that depends only on the length of each text, so the result for a text does not depend on the
        other texts.
        """
        limit = lambda places: min(places, self.positions or places)
        shapes: dict[tuple[int, int], list[int]] = {}
        for index, prompt in enumerate(prompts):
            sizes = (len(prompt.ids), len(prompt.ids) + max_new)
            shapes.setdefault(tuple(limit(power_of_two(size, SHORTEST)) for size in sizes), []).append(index)
        out: dict[int, Generated] = {}
        for (length, places), members in shapes.items():
            for first in range(0, len(members), ROWS):
                some = members[first : first + ROWS]
                found = self._batch(params, [prompts[index] for index in some], length, places, max_new, rule)
                out |= dict(zip(some, found, strict=True))
        return [out[index] for index in range(len(prompts))]

    def _batch(self, params: Tree, prompts: Sequence[Prompt], length: int, places: int, max_new: int, rule: Sampling) -> list[Generated]:
        """As `generate`, for at most ROWS texts."""
        # Rows after the last text hold one token each; their results are not used.
        tokens, lengths = np.zeros((ROWS, length), np.int32), np.ones(ROWS, np.int32)
        numbers = np.zeros((2, ROWS), np.uint32)
        for row, prompt in enumerate(prompts):
            tokens[row, : len(prompt.ids)], lengths[row], numbers[:, row] = prompt.ids, len(prompt.ids), (prompt.number, prompt.sample)
        inputs = SamplingInputs(np.uint32(rule.seed), np.float32(rule.temperature) if rule.temperature else None, *numbers)
        top_k = rule.top_k if rule.temperature else 0
        ids: list[list[int]] = [[] for _ in prompts]
        reasons = [""] * len(prompts)
        chosen, cache = self._prefill(params, tokens, lengths, inputs, places=places, top_k=top_k)
        at = lengths.copy()
        while True:
            found = np.asarray(chosen)
            for row in range(len(prompts)):
                if not reasons[row]:
                    reasons[row] = self._append(int(found[row]), ids[row], int(lengths[row]), max_new)
            if all(reasons):
                return [Generated(tuple(new), why) for new, why in zip(ids, reasons, strict=True)]
            chosen, cache = self._decode_step(params, cache, found, at, inputs, top_k=top_k)
            # The place of a text that has ended does not move, so that it stays within the cache.
            at = at + np.array([row < len(prompts) and not reasons[row] for row in range(ROWS)], np.int32)

    def _append(self, index: int, ids: list[int], length: int, max_new: int) -> str:
        """Appends a token to `ids` unless it ends the text. Returns why the continuation ended, '' if it has not."""
        if index in self.ends:
            return END
        ids.append(index)
        if len(ids) == max_new:
            return MAX_NEW
        return POSITIONS if length + len(ids) == self.positions else ""

    def _sample(self, logits: Array, places: Array, inputs: SamplingInputs, top_k: int) -> Array:
        """The next token of each text, i32 [batch], which stands at `places` i32 [batch]."""
        keys = rng.completion(inputs.seed, inputs.numbers, inputs.samples, places).per_row("sample", self.head.head.site)
        return sampling.choose(logits, self.allowed, keys, inputs.temperature, top_k)

    @functools.cached_property
    def _prefill(self) -> Callable[..., tuple[Array, tuple[Cache, ...]]]:
        """Compiled: (the first new token of each text, the cache), from tokens i32 [batch, length], padded at the end, and lengths."""

        @functools.partial(jax.jit, static_argnames=("places", "top_k"))
        def prefill(
            params: Tree, tokens: Array, lengths: Array, inputs: SamplingInputs, *, places: int, top_k: int
        ) -> tuple[Array, tuple[Cache, ...]]:
            where = jnp.broadcast_to(jnp.arange(tokens.shape[1], dtype=jnp.int32), tokens.shape)
            logits, cache = self.extend(params, self.empty(len(tokens), places), tokens, where, lengths - 1)
            return self._sample(logits, lengths, inputs, top_k), cache

        return prefill

    @functools.cached_property
    def _decode_step(self) -> Callable[..., tuple[Array, tuple[Cache, ...]]]:
        """Compiled: (the next token of each text, the cache), from its newest token, i32 [batch], and that token's place, i32 [batch]."""

        @functools.partial(jax.jit, static_argnames="top_k", donate_argnums=1)
        def decode_step(
            params: Tree, cache: tuple[Cache, ...], tokens: Array, places: Array, inputs: SamplingInputs, *, top_k: int
        ) -> tuple[Array, tuple[Cache, ...]]:
            logits, cache = self.extend(params, cache, tokens[:, None], places[:, None], jnp.zeros_like(places))
            return self._sample(logits, places + 1, inputs, top_k), cache

        return decode_step
