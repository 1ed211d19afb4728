"""Choosing whole words, one or several in a row: every piece of a word or none.

One word: the whole-word masking of google-research/bert:create_pretraining_data.py. Words come in random order and are taken while they
fit the budget; one that would overflow it is passed over.
"""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc.objectives.corrupt.rule import Choice, Draws, Masking, place, scores


@dataclasses.dataclass(frozen=True)
class Words:
    """Where the words of one row are. An edge is the first token of a word, or a token that is not a candidate.

    first: bool [length], the first token of a word of candidates. number: i32 [length], of the edges before this token's own.
    edges: i32 [length + 1], the edges in order, then `length`. floor: i32 [length + 1], the last edge that is not after a place.
    next, barrier: i32 [length], the first edge after a token, and the first token after it where no span goes on.
    """

    first: Array
    number: Array
    edges: Array
    floor: Array
    next: Array
    barrier: Array


def words_of(candidate: Array, segments: Array, word_starts: Array) -> Words:
    """The words of one row: candidate bool, segments and word_starts i32, all [length].

    A candidate that follows a special, or another text, starts a word whatever `word_starts` says: the row began inside that word.
    """
    length = candidate.shape[0]
    at = jnp.arange(length, dtype=jnp.int32)
    joined = jnp.concatenate([jnp.zeros(1, bool), candidate[:-1] & (segments[:-1] == segments[1:])])
    broken = ~candidate | ~joined
    edge = broken | (word_starts > 0)
    after = lambda flag: jnp.append(jax.lax.cummin(jnp.where(flag, at, length), reverse=True)[1:], jnp.int32(length))
    number = jnp.cumsum(edge, dtype=jnp.int32) - 1
    edges = jnp.full(length + 1, length, jnp.int32).at[jnp.where(edge, number, length)].set(jnp.where(edge, at, length))
    floor = jnp.append(jax.lax.cummax(jnp.where(edge, at, 0)), jnp.int32(length))
    return Words(edge & candidate, number, edges, floor, after(edge), after(broken))


def select(masking: Masking, drawn: Draws, row: Mapping[str, Array]) -> Choice:
    """Whole words, one at a time. row: `tokens`, `segments`, `word_starts`, i32 [length]."""
    return take(masking, drawn, row, jnp.ones(masking.predictions, jnp.int32))


def take(masking: Masking, drawn: Draws, row: Mapping[str, Array], wanted: Array) -> Choice:
    """Spans of whole words; wanted: i32 [predictions], the words of the first span, the second, ...

    Each starts at a random one of the words that are not chosen and that fit what the budget has left, so none is when no such word is
    there. It ends after its wanted words, or before: at a special, padding, another text, a word that is chosen, or where the next word
    would overflow the budget.
    """
    length, at = row["tokens"].shape[0], jnp.arange(row["tokens"].shape[0], dtype=jnp.int32)
    candidate = masking.candidates(row["tokens"], row["segments"])
    words = words_of(candidate, row["segments"], row["word_starts"])

    def pick(state: tuple[Array, Array, Array], words_wanted: Array) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        score, barrier, left = state
        best = jnp.max(jnp.where(words.next - at <= left, score, 0))
        start = place(best, length)
        wanted_end = words.edges[jnp.minimum(words.number[start] + words_wanted, length)]
        end = jnp.minimum(jnp.minimum(wanted_end, barrier[start]), words.floor[jnp.minimum(start + left, length)])
        end = jnp.where(best > 0, end, start)
        score = jnp.where((at >= start) & (at < end), 0, score)
        barrier = jnp.where((at < start) & (best > 0), jnp.minimum(barrier, start), barrier)
        return (score, barrier, left - (end - start)), (start, end - start)

    order = jnp.where(words.first, scores(drawn.selection, words.first), 0)
    state = order, words.barrier, masking.count(drawn, row["segments"], candidate)
    _, (starts, sizes) = jax.lax.scan(pick, state, wanted)
    return _laid_out(starts, sizes)


def _laid_out(starts: Array, sizes: Array) -> Choice:
    """The tokens of spans that start at `starts` and have `sizes` tokens, i32 [predictions], one after the other."""
    slots, ends = jnp.arange(starts.shape[0], dtype=jnp.int32), jnp.cumsum(sizes)
    span = jnp.sum(ends[None] <= slots[:, None], axis=1, dtype=jnp.int32)
    masked = slots < ends[-1]
    inside = jnp.minimum(span, starts.shape[0] - 1)
    return Choice(jnp.where(masked, starts[inside] + slots - (ends - sizes)[inside], 0), masked, inside)
