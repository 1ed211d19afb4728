"""Masking one row: which tokens are predicted, by the unit of the rule, and what each becomes.

`draws` (rule.py) holds all the randomness, `apply` is deterministic; both run inside the sharded step, one key a row.
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array

from jaxenc.objectives.corrupt import spans, tokens, whole_words
from jaxenc.objectives.corrupt.rule import UINT32, Choice, Draws, Masking

UNITS: Mapping[str, Callable[[Masking, Draws, Mapping[str, Array]], Choice]] = {
    "tokens": tokens.select,
    "words": whole_words.select,
    "ngrams": spans.select,
    "spans": spans.select,
}


def apply(masking: Masking, drawn: Draws, row: Mapping[str, Array]) -> dict[str, Array]:
    """Masks one row: `tokens`, `segments` and, but for single tokens, `word_starts`, i32 [length].

    Returns the corrupted `tokens` and, each i32 [predictions]: `masked_at` the predicted positions (0 beyond the row's count),
    `masked_ids` the original ids there, `masked` 1 where a prediction counts. Where words are chosen also, each an i32 scalar:
    `masked_words`, `masked_spans` how many, and `budget` how many predictions there may be.
    """
    chosen = UNITS[masking.unit](masking, drawn, row)
    originals = row["tokens"][chosen.at]
    becomes = replaced(masking, drawn, originals, chosen.span)
    places = jnp.where(chosen.masked, chosen.at, row["tokens"].shape[0])
    example = {
        "tokens": row["tokens"].at[places].set(becomes, mode="drop"),
        "masked_at": chosen.at,
        "masked_ids": jnp.where(chosen.masked, originals, 0),
        "masked": chosen.masked.astype(jnp.int32),
    }
    return example if masking.unit == "tokens" else {**example, **_counts(masking, drawn, row, chosen)}


def replaced(masking: Masking, drawn: Draws, originals: Array, span: Array) -> Array:
    """What predicted tokens become: [MASK], a random id, or themselves. originals, span: i32 [predictions].

    By token: each piece of a word has its own fate, as in google-research/bert:create_pretraining_data.py. By span: all tokens of one
    are masked, random or kept together (Joshi et al. 2019, section 3.1); the random ids are still drawn one by one.
    """
    action = drawn.action if masking.action == "token" else drawn.action[span]
    becomes_mask = action < jnp.uint32(threshold(masking.mask_share))
    becomes_random = action >= jnp.uint32(threshold(1 - masking.random_share))
    random_ids = jnp.asarray(masking.replacements)[drawn.replacement % len(masking.replacements)]
    return jnp.where(becomes_mask, masking.mask_id, jnp.where(becomes_random, random_ids, originals))


def threshold(share: float) -> int:
    """The u32 that uniform bits lie below with probability `share`, to 2^-32."""
    return min(round(share * UINT32), UINT32 - 1)


def _counts(masking: Masking, drawn: Draws, row: Mapping[str, Array], chosen: Choice) -> dict[str, Array]:
    candidate = masking.candidates(row["tokens"], row["segments"])
    first = whole_words.words_of(candidate, row["segments"], row["word_starts"]).first
    return {
        "masked_words": jnp.sum(chosen.masked & first[chosen.at], dtype=jnp.int32),
        "masked_spans": jnp.max(jnp.where(chosen.masked, chosen.span + 1, 0)),
        "budget": masking.count(drawn, row["segments"], candidate),
    }


def statistics(example: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
    """Metrics of masked rows: `mask_rate`, predictions by real tokens, and `padding`, padded places by all places.

    Where words are chosen also `span_tokens` and `span_words`, the mean length of a span, and `budget_used`, predictions by what the
    budget allows. A row without any token only fills up a batch and is not counted.
    """
    real = jnp.sum(example["segments"] > 0, axis=1).astype(jnp.float32)
    places = example["segments"].shape[1] * jnp.sum(real > 0).astype(jnp.float32)
    masked = jnp.sum(example["masked"]).astype(jnp.float32)
    metrics = {"mask_rate": (masked, jnp.sum(real)), "padding": (places - jnp.sum(real), places)}
    if "budget" not in example:
        return metrics
    chosen_words, chosen_spans, budget = (jnp.sum(example[name]).astype(jnp.float32) for name in ("masked_words", "masked_spans", "budget"))
    return {
        **metrics,
        "span_tokens": (masked, chosen_spans),
        "span_words": (chosen_words, chosen_spans),
        "budget_used": (masked, budget),
    }
