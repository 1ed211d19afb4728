"""Choosing what is predicted in a row and in which order (Yang et al. 2019, XLNet, sections 2.2, 2.3 and A.3).

The rule of zihangdai/xlnet:data_utils.py (_sample_mask, _local_perm), made a pure function of one key a row. `draws` holds all the
randomness, `apply` is deterministic, `visible` says who sees whom. A row has two halves: the `reuse` tokens that the next row of its slot
finds in its memory, and the rest. Each is permuted by itself; the second sees all of the first, and the first nothing of the second.
"""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.objectives.corrupt import rule, whole_words

# Fields of one row that a choice reads, each i32 [length].
FIELDS = ("tokens", "segments", "word_starts")


@dataclasses.dataclass(frozen=True)
class Permutation:
    """The numbers of the rule.

    reuse: tokens of the first half. predictions: of a row, the fixed shape; the first half has the odd one. lengths: the law of n, as
    `corrupt/spans.py` writes it. alpha, beta: an n-gram of t tokens has t · alpha / beta more around it, rounded down. unit: whether n
    counts `words` or `tokens`. candidates: `text` predicts no SEP and no CLS; `all` lets the choice fall on them, and such a prediction
    is lost. size: tokens of a block, the longest permutation. shuffle: `own` for each block of a half, or one `shared` by its blocks.
    specials: the ids of SEP and CLS, which keep a rank.
    """

    reuse: int
    predictions: int
    lengths: tuple[int, ...]
    alpha: int
    beta: int
    unit: str
    candidates: str
    size: int
    shuffle: str
    specials: tuple[int, int]

    def budgets(self) -> tuple[int, int]:
        """Predictions of the first and of the second half."""
        second = self.predictions // 2
        return self.predictions - second, second

    def functional(self, tokens: Array) -> Array:
        """bool [length]: SEP and CLS, which nobody predicts."""
        return jnp.isin(tokens, jnp.array(self.specials, jnp.int32))


@dataclasses.dataclass(frozen=True)
class PermutationDraws:
    """Uniform u32 bits of one row. lengths, places: [predictions], for each n-gram; singles, order: [length], by position."""

    lengths: Array
    places: Array
    singles: Array
    order: Array


def draws(permutation: Permutation, key: Array, length: int) -> PermutationDraws:
    """All the random bits that one row takes from its key."""
    n = permutation.predictions
    bits = jax.random.bits(key, (2 * (n + length),), jnp.uint32)
    return PermutationDraws(*jnp.split(bits, np.cumsum([n, n, length])))


def apply(permutation: Permutation, drawn: PermutationDraws, row: Mapping[str, Array]) -> dict[str, Array]:
    """What is predicted in one row, and its order. row: FIELDS i32 [length], and `direction` i32, -1 for a text that runs backward.

    Returns `rank` i32 [length], the lower the earlier: `visible` reads it; `predicted_at` i32 [predictions], the predicted places from
    left to right (0 beyond the row's count); `masked` i32 [predictions], 1 where a prediction counts. The tokens stay as they are: what
    is predicted is hidden by the order alone.
    """
    split, (first, second) = permutation.reuse, permutation.budgets()
    halves = []
    for some, slots, budget in ((slice(split), slice(first), first), (slice(split, None), slice(first, None), second)):
        bits = PermutationDraws(drawn.lengths[slots], drawn.places[slots], drawn.singles[some], drawn.order[some])
        half = {name: row[name][some] for name in FIELDS}
        halves.append((choose(permutation, bits, half, row["direction"], budget), order(permutation, bits.order)))
    chosen, place = (jnp.concatenate(parts) for parts in zip(*halves, strict=True))

    functional, length = permutation.functional(row["tokens"]), len(chosen)
    base = jnp.where(jnp.arange(length) < split, 0, split + 1)
    rank = jnp.where(chosen | functional, base + 1 + place, base)
    target = chosen & ~functional
    slots = jnp.where(target, jnp.cumsum(target) - 1, permutation.predictions)
    at = jnp.zeros(permutation.predictions, jnp.int32).at[slots].set(jnp.arange(length, dtype=jnp.int32), mode="drop")
    return {
        "rank": jnp.where(row["segments"] > 0, rank, length + 2),
        "predicted_at": at,
        "masked": (jnp.arange(permutation.predictions) < jnp.sum(target)).astype(jnp.int32),
    }


def visible(rank: Array, at: Array) -> tuple[Array, Array]:
    """(content bool [..., length, length], query bool [..., predictions, length]): which tokens each token's content stream and each
    prediction's query stream sees, of ranks i32 [..., length] and predicted places i32 [..., predictions].

    A token that is not predicted has the lowest rank of its half, SEP, CLS and the predicted each a rank of their own above it, the
    second half ranks above the whole first, and padding above all. So (_local_perm): one that is not predicted sees all such of its half
    and before, no predicted one, no SEP and no CLS; a prediction sees those and what comes before it in the order, never itself; the
    content stream sees its own token too.
    """
    of_query = jnp.take_along_axis(rank, at, axis=-1)
    return rank[..., None, :] <= rank[..., :, None], rank[..., None, :] < of_query[..., :, None]


def order(permutation: Permutation, bits: Array) -> Array:
    """i32 [half]: the place of each token of a half in the order. Blocks of `size` tokens follow each other; inside, all orders are equally
    likely. In data_utils.py one shuffle of the rows of a [size, blocks] table serves all blocks (`shared`)."""
    size = permutation.size
    blocks = rule.scores(bits, jnp.zeros(bits.shape, bool)).reshape(-1, size)
    inside = jnp.argsort(jnp.argsort(blocks[:1] if permutation.shuffle == "shared" else blocks, axis=1), axis=1)
    return (jnp.arange(len(blocks))[:, None] * size + inside).reshape(-1).astype(jnp.int32)


def choose(permutation: Permutation, drawn: PermutationDraws, half: Mapping[str, Array], direction: Array, budget: int) -> Array:
    """bool [half]: the tokens of a half that are chosen, `budget` of them where it has as many candidates; `drawn`: its part of the bits.

    n-grams in the reading order of the text, then single places at random while any are left to choose.
    """
    reading = {name: jnp.where(direction < 0, leaf[::-1], leaf) for name, leaf in half.items()}
    candidate = reading["segments"] > 0
    if permutation.candidates == "text":
        candidate &= ~permutation.functional(reading["tokens"])
    chosen = ngrams(permutation, drawn, candidate, reading, budget)
    free = candidate & ~chosen
    score, more = rule.scores(drawn.singles, free), jnp.minimum(budget - jnp.sum(chosen), jnp.sum(free))
    last = jax.lax.top_k(score, budget)[0][jnp.maximum(more - 1, 0)]
    chosen |= free & (score >= last) & (more > 0)
    return jnp.where(direction < 0, chosen[::-1], chosen)


def ngrams(permutation: Permutation, drawn: PermutationDraws, candidate: Array, half: Mapping[str, Array], budget: int) -> Array:
    """bool [half]: the tokens of n-grams, found in one walk over a half in reading order, from its first candidate on.

    Each time n is drawn, no more than what the budget has left. Its context is alpha / beta times as many tokens as the next n have: n, or
    those of the next n words. The n-gram begins at the first start of a word from a uniform place of the context on; after it the walk
    passes over as many tokens as the context has left. n words end where a special, padding or the half ends them, or the next word would
    overflow the budget. n tokens that reach the end of the half are dropped and end the walk, as in data_utils.py, whose loop over words
    asks again and again where the first one starts.
    """
    length, whole = len(candidate), permutation.unit == "words"
    table = whole_words.words_of(candidate, half["segments"], half["word_starts"])
    starts = table.first if whole else candidate & (half["word_starts"] > 0)
    at = jnp.arange(length, dtype=jnp.int32)
    following = jnp.append(jax.lax.cummin(jnp.where(starts, at, length), reverse=True), jnp.int32(length))
    thresholds = jnp.array(permutation.lengths, jnp.uint32)

    def size(begin: Array, n: Array) -> Array:
        place = jnp.minimum(begin, length - 1)
        return table.edges[jnp.minimum(table.number[place] + n, length)] - place if whole else n

    def step(state: tuple[Array, Array], bits: tuple[Array, Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        cursor, left = state
        n = jnp.minimum(1 + jnp.sum(bits[0] >= thresholds, dtype=jnp.int32), left)
        context = jnp.maximum(size(following[jnp.minimum(cursor, length)], n) * permutation.alpha // permutation.beta, 1)
        before = (bits[1] % context.astype(jnp.uint32)).astype(jnp.int32)
        begin = following[jnp.minimum(cursor + before, length)]
        inside = jnp.minimum(begin, length - 1)
        end = begin + size(begin, n)
        goes_on = (begin < length) & (left > 0) & (whole | (end < length))
        end = jnp.minimum(jnp.minimum(end, table.barrier[inside]), table.floor[jnp.minimum(begin + left, length)] if whole else length)
        taken = jnp.where(goes_on, end - begin, 0)
        cursor = begin + jnp.maximum(taken, 1) + context - before
        return (jnp.where(goes_on, cursor, length), left - taken), (begin, taken)

    state = jnp.argmax(candidate).astype(jnp.int32), jnp.minimum(jnp.sum(candidate, dtype=jnp.int32), budget)
    _, (begins, sizes) = jax.lax.scan(step, state, (drawn.lengths, drawn.places))
    edges = jnp.zeros(length + 1, jnp.int32).at[begins].add(jnp.minimum(sizes, 1)).at[begins + sizes].add(-jnp.minimum(sizes, 1))
    return jnp.cumsum(edges)[:length] > 0
