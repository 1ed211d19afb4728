"""Token by token with a cache: one compiled function reads the prompts of a batch, another adds a token to each of its texts."""

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
from jaxenc.layers.attend import Visible
from jaxenc.layers.cache import Cache
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective
from jaxenc.tree import Tree

# Texts that are continued at a time. A step reads every weight once, which takes longer than computing a few more rows.
ROWS = 8
# Why a continuation ended: by a piece that ends texts, by the number of tokens that was asked for, by the model's last position.
END, MAX_NEW, POSITIONS = "end", "max_new", "positions"


@dataclasses.dataclass(frozen=True)
class Start:
    """What one continuation starts from. ids: of the prompt, at least one; prompt, sample: the numbers that its draws depend on."""

    ids: Sequence[int]
    prompt: int
    sample: int


@dataclasses.dataclass(frozen=True)
class Continued:
    """ids: of the new tokens, without the piece that ends the text; ended: END, MAX_NEW or POSITIONS."""

    ids: tuple[int, ...]
    ended: str


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Draws:
    """Of a batch. seed: u32; temperature: float32, None for the most probable token; prompts, samples: u32 [batch]."""

    seed: np.ndarray
    temperature: np.ndarray | None
    prompts: np.ndarray
    samples: np.ndarray


def of(objective: Objective, vocabulary: Vocabulary) -> "Decoder":
    """The decoder of an objective with the head `next_token`. Raises UserError for one without it, for a model whose attention is not
    causal, and for a kind of model that takes no cache."""
    head = objective.heads.get(NEXT_TOKEN.name)
    # An objective with this head has the encoder that the head reads.
    if head is None or objective.encoder.config.attention != "causal":
        what = "this model does not predict the next token from those before it, so it continues no text"
        raise UserError(f"{what}: use one that was trained with objective.kind=causal, such as the recipe gpt/small")
    families.able(objective.encoder.config, Incremental, "continuing a text takes a model that keeps what it has read")
    may = sampling.allowed(vocabulary, padded(objective.encoder.config.vocab_size))
    return Decoder(objective.encoder, head, may, sampling.ends(vocabulary))


@dataclasses.dataclass(frozen=True, eq=False)
class Decoder:
    """Continues texts with a causal model. may: bool [padded vocabulary], the pieces that may be generated; ends: those that end a text."""

    encoder: Encoder
    head: Fitted
    may: np.ndarray
    ends: frozenset[int]

    @property
    def positions(self) -> int:
        """The most tokens of a text, 0 for no limit."""
        return self.encoder.config.positions

    def empty(self, batch: int, places: int) -> tuple[Cache, ...]:
        """A cache for `batch` texts of at most `places` tokens."""
        return self.encoder.config.empty_cache(self.encoder.execution, batch, places)

    def extend(self, params: Tree, cache: tuple[Cache, ...], tokens: Array, places: Array, last: Array) -> tuple[Array, tuple[Cache, ...]]:
        """(logits of the token after that in column last[row], float32 [batch, padded vocabulary]; the cache with these tokens); pure.

        tokens: i32 [batch, n] at `places` i32 [batch, n] of their texts; each sees those before it, here and in the cache. Tokens of
        padding come after the real ones: later tokens overwrite them before anything sees them. last: i32 [batch].
        """
        visible = self.encoder.config.attended(Visible.by_places(places))
        with jax.default_matmul_precision("highest"):
            given = (tokens, jnp.zeros_like(tokens), places, visible, None, False, cache)
            states = self.encoder.apply({"params": params}, *given)
            hidden = jnp.take_along_axis(states.last, last[:, None, None], axis=1)[:, 0]
            return encoders.apply(self.head, params, hidden, states.table).astype(jnp.float32), states.cache

    def continued(self, params: Tree, starts: Sequence[Start], max_new: int, rule: Sampling) -> list[Continued]:
        """The continuation of each start, in order; each is shorter than `positions`.

        ROWS texts are computed at a time, of one shape that depends on the length of a text alone: the others in a batch do not change a
        result.
        """
        limit = lambda places: min(places, self.positions or places)
        shapes: dict[tuple[int, int], list[int]] = {}
        for index, start in enumerate(starts):
            sizes = (len(start.ids), len(start.ids) + max_new)
            shapes.setdefault(tuple(limit(power_of_two(size, SHORTEST)) for size in sizes), []).append(index)
        out: dict[int, Continued] = {}
        for (length, places), members in shapes.items():
            for first in range(0, len(members), ROWS):
                some = members[first : first + ROWS]
                found = self._batch(params, [starts[index] for index in some], length, places, max_new, rule)
                out |= dict(zip(some, found, strict=True))
        return [out[index] for index in range(len(starts))]

    def _batch(self, params: Tree, starts: Sequence[Start], length: int, places: int, max_new: int, rule: Sampling) -> list[Continued]:
        """As `continued`, for at most ROWS texts."""
        # Rows beyond the texts hold one token each, and nobody reads them.
        tokens, lengths = np.zeros((ROWS, length), np.int32), np.ones(ROWS, np.int32)
        numbers = np.zeros((2, ROWS), np.uint32)
        for row, start in enumerate(starts):
            tokens[row, : len(start.ids)], lengths[row], numbers[:, row] = start.ids, len(start.ids), (start.prompt, start.sample)
        draws = Draws(np.uint32(rule.seed), np.float32(rule.temperature) if rule.temperature else None, *numbers)
        top_k = rule.top_k if rule.temperature else 0
        ids: list[list[int]] = [[] for _ in starts]
        ended = [""] * len(starts)
        chosen, cache = self._begin(params, tokens, lengths, draws, places=places, top_k=top_k)
        at = lengths.copy()
        while True:
            found = np.asarray(chosen)
            for row in range(len(starts)):
                if not ended[row]:
                    ended[row] = self._taken(int(found[row]), ids[row], int(lengths[row]), max_new)
            if all(ended):
                return [Continued(tuple(new), why) for new, why in zip(ids, ended, strict=True)]
            chosen, cache = self._step(params, cache, found, at, draws, top_k=top_k)
            # A text that has ended stays where it is, within its places.
            at = at + np.array([row < len(starts) and not ended[row] for row in range(ROWS)], np.int32)

    def _taken(self, index: int, ids: list[int], length: int, max_new: int) -> str:
        """Adds a token to `ids` unless it ends the text; returns why the continuation has ended, '' where it goes on."""
        if index in self.ends:
            return END
        ids.append(index)
        if len(ids) == max_new:
            return MAX_NEW
        return POSITIONS if length + len(ids) == self.positions else ""

    def _chosen(self, logits: Array, places: Array, draws: Draws, top_k: int) -> Array:
        """The tokens at `places` i32 [batch] of the texts, i32 [batch]."""
        keys = rng.completion(draws.seed, draws.prompts, draws.samples, places).per_row("sample", self.head.head.site)
        return sampling.choose(logits, self.may, keys, draws.temperature, top_k)

    @functools.cached_property
    def _begin(self) -> Callable[..., tuple[Array, tuple[Cache, ...]]]:
        """Compiled: (the first new token of each text, the cache), from tokens i32 [batch, length], padded at the end, and lengths."""

        @functools.partial(jax.jit, static_argnames=("places", "top_k"))
        def begin(params: Tree, tokens: Array, lengths: Array, draws: Draws, *, places: int, top_k: int) -> tuple[Array, tuple[Cache, ...]]:
            where = jnp.broadcast_to(jnp.arange(tokens.shape[1], dtype=jnp.int32), tokens.shape)
            logits, cache = self.extend(params, self.empty(len(tokens), places), tokens, where, lengths - 1)
            return self._chosen(logits, lengths, draws, top_k), cache

        return begin

    @functools.cached_property
    def _step(self) -> Callable[..., tuple[Array, tuple[Cache, ...]]]:
        """Compiled: (the next token of each text, the cache), from its newest token, i32 [batch], and that token's place, i32 [batch]."""

        @functools.partial(jax.jit, static_argnames="top_k", donate_argnums=1)
        def step(
            params: Tree, cache: tuple[Cache, ...], tokens: Array, places: Array, draws: Draws, *, top_k: int
        ) -> tuple[Array, tuple[Cache, ...]]:
            logits, cache = self.extend(params, cache, tokens[:, None], places[:, None], jnp.zeros_like(places))
            return self._chosen(logits, places + 1, draws, top_k), cache

        return step
