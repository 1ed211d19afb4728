"""XLNet's choice and order in plain loops over the same draws: data_utils.py of zihangdai/xlnet, its fault included, and the clean rule."""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from jaxenc.objectives.corrupt.permute import Permutation
from tests import tiny
from tests.objectives.corrupt.chosen import words_in

V = tiny.VOCABULARY
LAW = [Fraction(60, 137 * n) for n in range(1, 6)]  # of n, proportional to 1 / n


def halves(p: Permutation, row: Mapping[str, np.ndarray], drawn: Mapping[str, np.ndarray]) -> Any:
    """(first place, budget, the half as read, its draws) of each half."""
    second = p.predictions // 2
    first = p.predictions - second
    parts = (0, slice(p.reuse), slice(first), first), (p.reuse, slice(p.reuse, None), slice(first, None), second)
    for start, some, slots, budget in parts:
        read = slice(None, None, int(row["direction"]) or 1)
        half = {name: row[name][some][read] for name in ("tokens", "segments", "word_starts")}
        bits = {name: drawn[name][slots if name in ("lengths", "places") else some].tolist() for name in drawn}
        yield start, budget, half, bits


def filled(chosen: list[bool], candidates: list[bool], bits: list[int], budget: int) -> list[bool]:
    """With single places added while any is missing, by their random bits, ties to the later place."""
    shift = 1 + max(1, (len(chosen) - 1).bit_length())
    free = sorted((i for i in range(len(chosen)) if candidates[i] and not chosen[i]), key=lambda i: (bits[i] >> shift, i), reverse=True)
    more = set(free[: max(0, budget - sum(chosen))])
    return [chosen[i] or i in more for i in range(len(chosen))]


def drawn_n(bits: int) -> int:
    return 1 + sum(Fraction(bits, 2**32) >= sum(LAW[: k + 1]) for k in range(4))


def published_choice(p: Permutation, half: Mapping[str, np.ndarray], bits: Mapping[str, list[int]], budget: int) -> list[bool]:
    """The loop of data_utils.py (_sample_mask), its fault included: the search for the end looks at the first token each time."""
    length, starts = len(half["tokens"]), half["word_starts"].tolist()
    real = (half["segments"] > 0).tolist()
    mask, count, current, budget = [False] * length, 0, real.index(True) if any(real) else 0, min(budget, sum(real))
    draws = iter(zip(bits["lengths"], bits["places"], strict=True))
    while current < length and count < budget:
        word, place = next(draws)
        n = min(drawn_n(word), budget - count)
        context = n * p.alpha // p.beta
        left = place % context
        begin = current + left
        while begin < length and not starts[begin]:
            begin += 1
        if begin >= length:
            break
        end, grams = begin + 1, 1
        while end < length:
            if starts[begin]:
                grams += 1
                if grams > n:
                    break
            end += 1
        if end >= length:
            break
        for i in range(begin, end):
            mask[i] = real[i]
        count += sum(real[begin:end])
        current = end + context - left
    return filled(mask, real, bits["singles"], budget)


def clean_choice(p: Permutation, half: Mapping[str, np.ndarray], bits: Mapping[str, list[int]], budget: int) -> list[bool]:
    """The walk with n whole words, those that fit, of a run without a special."""
    never = dataclasses.replace(tiny.objective().mlm.masking, never_masked=(V.sep, V.cls))
    words = words_in(never, half)
    firsts = {word[0]: k for k, word in enumerate(words) if word}
    candidates = [bool(s) and t not in (V.sep, V.cls) for s, t in zip(half["segments"], half["tokens"], strict=True)]
    length, chosen, budget = len(half["tokens"]), set(), min(budget, sum(candidates))
    current = candidates.index(True) if any(candidates) else 0
    edges = [i for i in range(length) if i in firsts or not candidates[i]]
    for word, place in zip(bits["lengths"], bits["places"], strict=True):
        left = budget - len(chosen)
        n = min(drawn_n(word), left)
        here = min((first for first in firsts if first >= current), default=length - 1)
        context = max(1, (([e for e in edges if e >= here] + [length] * (n + 1))[n] - here) * p.alpha // p.beta)
        before = place % context
        begin = min((first for first in firsts if first >= current + before), default=length)
        if begin == length or not left:
            break
        taken: list[int] = []
        for following in words[firsts[begin] : firsts[begin] + n]:
            if not following or len(taken) + len(following) > left:
                break
            taken += following
        chosen |= set(taken)
        current = begin + max(1, len(taken)) + context - before
    return filled([i in chosen for i in range(length)], candidates, bits["singles"], budget)


def local_perm(p: Permutation, tokens: np.ndarray, is_masked: np.ndarray, bits: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(perm_mask: 1 where a token may not be attended to, target_mask) of one half, as data_utils.py (_local_perm) has them."""
    length, shift = len(tokens), 1 + max(1, (len(tokens) - 1).bit_length())
    table = np.arange(length).reshape(-1, p.size).T
    columns = [0] * table.shape[1] if p.shuffle == "shared" else range(table.shape[1])
    index = np.empty_like(table)
    for block, source in enumerate(columns):
        score = [(bits[source * p.size + k] >> shift, k) for k in range(p.size)]
        shuffle = [sorted(score).index(s) for s in score]
        index[:, block] = table[shuffle, block]
    index = index.T.reshape(-1)
    functional = np.isin(tokens, (V.sep, V.cls))
    context = ~is_masked & ~functional
    reverse = np.where(context, -1, index)
    target = ~context & ~functional
    own = np.where(target, reverse, reverse + 1)
    return (own[:, None] <= reverse[None, :]) & ~context, target
