"""Masking with replacement against a loop over the same draws, and how often a place is drawn twice."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.data.sources import DataConfig
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.corrupt import rule
from jaxenc.objectives.corrupt import with_replacement as repeats
from jaxenc.objectives.corrupt.rule import Masking
from jaxenc.objectives.rtd import RtdConfig
from tests import tiny

V = tiny.VOCABULARY


def published(length: int, rate: float = 0.15) -> Masking:
    config = RtdConfig(rate=rate, mask_share=0.85, with_replacement=True, max_predictions=int((rate + 0.005) * length))
    return config.build(tiny.PAIR, PhaseSetting(V, tiny.execution(), DataConfig(length=length))).generator.masking


def corrupt(masking: Masking, rows: np.ndarray, segments: np.ndarray) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    @jax.jit
    @jax.vmap
    def run(key: jax.Array, row: jax.Array, segment: jax.Array) -> tuple:
        drawn = rule.draws(masking, key, row.shape[0], jnp.int32(0))
        row = {"tokens": row, "segments": segment}
        return [getattr(drawn, field.name) for field in dataclasses.fields(drawn)], repeats.apply(masking, drawn, row)

    return jax.device_get(run(rng.training(1, jnp.int32(0), len(rows)).per_row("corrupt", "mask"), rows, segments))


def reference(masking: Masking, selection: np.ndarray, action: np.ndarray, row: np.ndarray, segments: np.ndarray) -> dict:
    """google-research/electra:pretrain/pretrain_helpers.py (mask) by hand: each draw is the (bits mod n)-th of the n candidates."""
    candidates = [i for i in range(len(row)) if segments[i] and row[i] not in (V.pad, V.cls, V.sep, V.mask)]
    n = int(segments.sum())
    count = min(masking.predictions, max(1, round(n * masking.rate))) if candidates else 0
    out = {"tokens": row.tolist(), "masked_at": [], "masked_ids": [], "masked": []}
    for slot in range(masking.predictions):
        at = candidates[int(selection[slot]) % len(candidates)] if slot < count else 0
        out["masked_at"].append(at)
        out["masked_ids"].append(int(row[at]) if slot < count else 0)
        out["masked"].append(int(slot < count))
        if slot < count and int(action[slot]) < round(0.85 * 2**32):
            out["tokens"][at] = V.mask
    return out


@pytest.mark.parametrize("length", [20, 64, 128])
def test_equals_a_loop_over_the_same_draws(length: int) -> None:
    """Bitwise, in every field; [MASK] in the text is no candidate, a row of specials or of padding has none, and a row of fewer candidates
    than predictions draws some of them again."""
    batch = tiny.batch([length, length, 3, 1, 0, length // 2] * 4, length)
    rows, segments = batch["tokens"], batch["segments"]
    rows[0, 1:length:3] = V.mask
    rows[1, :] = V.cls
    rows[6, :], rows[7, :] = V.cls, V.sep
    rows[6, [3, 9]], rows[7, 5] = rows[0, 2], rows[0, 3]
    draws, got = corrupt(published(length), rows, segments)
    assert (got["masked"][[6, 7]].sum(1) > 2).all()
    for i in range(len(rows)):
        want = reference(published(length), draws[0][i], draws[1][i], rows[i], segments[i])
        assert {name: array[i].tolist() for name, array in got.items()} == want, f"row {i}"


@pytest.mark.parametrize("length, rate, twice", [(128, 0.15, 1.3), (512, 0.15, 5.5), (512, 0.25, 14.8)])
def test_as_many_places_repeat_as_published(length: int, rate: float, twice: float) -> None:
    """Draws less places: of k draws among n candidates, k - n (1 - (1 - 1/n)^k), with 5 standard errors; and 85 % of draws are [MASK]."""
    rows = tiny.batch([length] * 800, length)
    masking = published(length, rate)
    draws, got = corrupt(masking, rows["tokens"], rows["segments"])
    repeats = [int(k.sum()) - len(set(at[k > 0])) for at, k in zip(got["masked_at"], got["masked"], strict=True)]
    k, n = int(got["masked"][0].sum()), length - 2
    assert abs(np.mean(repeats) - (k - n * (1 - (1 - 1 / n) ** k))) <= 5 * np.std(repeats) / np.sqrt(800)
    assert abs(np.mean(repeats) - twice) <= 0.3
    masks = np.mean(draws[1][:, :k] < round(0.85 * 2**32))
    assert abs(masks - 0.85) <= 5 * np.sqrt(0.85 * 0.15 / (800 * k))
