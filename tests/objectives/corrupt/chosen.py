"""What masking makes of rows under jit and vmap, for its tests; rows of words, and the rule of words and spans as a plain loop."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import rng
from jaxenc.objectives.corrupt import masking as maskings
from jaxenc.objectives.corrupt import rule as rules
from jaxenc.objectives.corrupt.rule import Masking
from jaxenc.objectives.mlm import MlmConfig
from tests import tiny

V = tiny.VOCABULARY
GOLDEN = Path(__file__).parents[2] / "golden"
Row = Mapping[str, np.ndarray]
# p(n) of the laws, and the rule of each unit as the recipes have it.
LAWS = {
    "words": [Fraction(1)],
    "ngrams": [Fraction(6, 11), Fraction(3, 11), Fraction(2, 11)],
    "spans": [Fraction(4**n * 5 ** (9 - n), 5**10 - 4**10) for n in range(10)],
}
CONFIGS = {"words": MlmConfig(unit="words"), "ngrams": MlmConfig(unit="ngrams"), "spans": MlmConfig(unit="spans", action="span")}


@functools.cache
def _jitted(length: int, numbers: tuple, replacements: bytes) -> Any:
    rule = Masking(*numbers, np.frombuffer(replacements, np.int32))

    @jax.jit
    @jax.vmap
    def run(key: jax.Array, row: Mapping[str, jax.Array]) -> tuple[dict, jax.Array, dict]:
        drawn = rules.draws(rule, key, length, jnp.int32(0))
        choice = maskings.UNITS[rule.unit](rule, drawn, row)
        return {f.name: getattr(drawn, f.name) for f in dataclasses.fields(drawn)}, choice.span, maskings.apply(rule, drawn, row)

    return run


def corrupt(rule: Masking, rows: Row, seed: int = 0, step: int = 0) -> tuple[dict, np.ndarray, dict]:
    """(draws, span of each prediction, example) of rows that stand in slots 0, 1, ... of training step `step`."""
    numbers = tuple(getattr(rule, field.name) for field in dataclasses.fields(rule))[:-1]
    keys = rng.training(seed, jnp.int32(step), len(rows["tokens"])).per_row("corrupt", "mask")
    run = _jitted(rows["tokens"].shape[1], numbers, np.asarray(rule.replacements, np.int32).tobytes())
    return jax.device_get(run(keys, {name: rows[name] for name in ("tokens", "segments", "word_starts")}))


def assert_golden(got: Mapping[str, np.ndarray], name: str, folder: Path) -> None:
    """The masks of `got` are those of the golden file `name`, a line a row: `positions:what stood there->what stands there`."""
    lines = []
    for at, ids, row, n in zip(got["masked_at"], got["masked_ids"], got["tokens"], got["masked"].sum(1), strict=True):
        lines.append(" ".join(f"{p}:{old}->{row[p]}" for p, old in zip(at[:n].tolist(), ids[:n].tolist(), strict=True)))
    text = "\n".join(lines) + "\n"
    (folder / name).write_text(text)
    assert text == (GOLDEN / name).read_text(), f"masks changed: if that is meant, copy {folder / name} to {GOLDEN}"


def rows_of_words(count: int, length: int, seed: int, longest: int = 5) -> Row:
    """Full rows: CLS, words of 1 to `longest` pieces, all equally likely, SEP; the last word is cut where the row ends."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, longest + 1, (count, length))
    starts = np.zeros((count, 2 * length * longest), np.int32)
    np.put_along_axis(starts, np.cumsum(sizes, 1) - sizes, 1, 1)
    tokens = np.full((count, length), V.unk, np.int32)
    tokens[:, 0], tokens[:, -1] = V.cls, V.sep
    word_starts = np.ones_like(tokens)
    word_starts[:, 1:-1] = starts[:, : length - 2]
    return {"tokens": tokens, "segments": np.ones_like(tokens), "word_starts": word_starts}


def words_in(rule: Masking, row: Row) -> list[list[int]]:
    """The positions of each word of candidates, in order; () stands between words that no span joins."""
    words: list[list[int]] = []
    for i, (token, segment, first) in enumerate(zip(*(row[name].tolist() for name in ("tokens", "segments", "word_starts")), strict=True)):
        if segment == 0 or token in rule.never_masked:
            words.append([])
        elif not words or not words[-1] or first or segment != row["segments"][i - 1]:
            if i and segment != row["segments"][i - 1]:
                words.append([])
            words.append([i])
        else:
            words[-1].append(i)
    return words


def greedy(words: Sequence[Sequence[int]], order: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    """The rule in BERT's form, the words taken once each in `order`: spans as lists of numbers of words.

    A word that is chosen, or too long for what the budget has left, starts no span. The k-th span takes up to lengths[k] words, until
    one is chosen, too long, or none at all.
    """
    spans: list[list[int]] = []
    chosen: set[int] = set()
    for start in order:
        span: list[int] = []
        while len(spans) < len(lengths) and len(span) < lengths[len(spans)] and start + len(span) < len(words):
            word = start + len(span)
            if not words[word] or word in chosen or len(words[word]) > budget:
                break
            span.append(word)
            budget -= len(words[word])
        if span:
            spans.append(span)
            chosen.update(span)
    return spans


def reference(rule: Masking, drawn: Mapping[str, np.ndarray], row: Row) -> dict[str, Any]:
    """One row, the same draws read in plain Python; positions go by the bits of their word's first token, as for single tokens."""
    words, length, size = words_in(rule, row), len(row["tokens"]), rule.predictions
    dropped = 1 + max(1, (length - 1).bit_length())
    bits = [(int(drawn["selection"][word[0]]) >> dropped, word[0]) if word else (-1, -1) for word in words]
    order = sorted((i for i in range(len(words)) if words[i]), key=lambda i: bits[i], reverse=True)
    n = int((row["segments"] > 0).sum())
    if rule.rounding == "stochastic":
        wanted = int(Fraction(str(rule.rate)) * n + Fraction(2**32 - 1 - int(drawn["rounding"]), 2**32))
    else:
        wanted = max(1, round(n * rule.rate)) if n else 0
    budget = min(size, wanted, sum(map(len, words)))
    law = LAWS[rule.unit]
    lengths = [1 + sum(Fraction(int(u), 2**32) >= sum(law[: k + 1]) for k in range(len(law) - 1)) for u in drawn["lengths"]] or [1] * size
    spans = greedy(words, order, lengths, budget)
    out = {"tokens": row["tokens"].tolist(), "masked_at": [0] * size, "masked_ids": [0] * size, "masked": [0] * size}
    slots = [(k, at) for k, span in enumerate(spans) for word in span for at in words[word]]
    for j, (k, at) in enumerate(slots):
        out["masked_at"][j], out["masked_ids"][j], out["masked"][j] = at, int(row["tokens"][at]), 1
        share = int(drawn["action"][j if rule.action == "token" else k]) / 2**32
        if share < rule.mask_share:
            out["tokens"][at] = rule.mask_id
        elif share >= 1 - rule.random_share:
            out["tokens"][at] = int(rule.replacements[int(drawn["replacement"][j]) % len(rule.replacements)])
    return {**out, "masked_words": sum(map(len, spans)), "masked_spans": len(spans), "budget": budget}
