"""Whether as many tokens are predicted as the objective asks for, whether that is a usual share, and how much of the rows is padding."""

from collections.abc import Iterator

import numpy as np

from jaxenc.findings import WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence

OFF = 0.2  # of the share that is asked for: rounding in rows of 30 tokens is below 0.05
# Devlin et al. 2018 mask 0.15, Clark et al. 2020 0.25 for their large model; Wettig et al. 2023 find 0.4 best for large models. Below
# 0.1 a step teaches little.
USUAL = (0.1, 0.5)
PADDING = 0.5  # of the places


def rate(run: Evidence) -> Iterator[Finding]:
    """The share of predicted tokens: far from what the objective asks for, or far from what is usual."""
    seen = run.train_of("mask_rate")
    if not len(seen):
        return
    found, asked = float(np.median(seen.values[-10:])), _asked(run)
    if asked and abs(found - asked) > OFF * asked:
        what = f"{found:.1%} of the tokens are predicted, and the objective asks for {asked:.1%}"
        yield Finding(WARNING, "masking rate", what, _advice(run, found < asked))
    elif not USUAL[0] <= found <= USUAL[1]:
        what = f"{found:.1%} of the tokens are predicted; 15 % is usual, and {USUAL[0]:.0%} to {USUAL[1]:.0%} are known to work"
        yield Finding(WARNING, "masking rate", what, "set objective.rate=0.15 (0.3 to 0.4 for large models)")


def padding(run: Evidence) -> Iterator[Finding]:
    """More padding than text."""
    seen = run.train_of("padding")
    if len(seen) and (share := float(np.median(seen.values[-10:]))) > PADDING:
        what = f"{share:.0%} of the places in the rows are padding, which cost as much time as text"
        yield Finding(WARNING, "padding", what, "use data.rows=text, full_sentences, packed or bucketed, or shorter rows (data.length)")


def _asked(run: Evidence) -> float:
    """The share that the objective asks for at the last step; 0 where it does not say."""
    one = run.objective
    if run.kind == "plm":
        return one.get("predictions", 0) / run.phase.length
    rate, final, steps = one.get("rate", 0.0), one.get("final_rate", 0.0), one.get("rate_steps", 0)
    return rate + (final - rate) * min(run.step / steps, 1) if final and steps else rate


def _advice(run: Evidence, few: bool) -> str:
    limit = run.phase.max_predictions or run.objective.get("max_predictions", 0)
    if few and limit:
        return f"rows of {run.phase.length} tokens hold {limit} predictions at most: set objective.max_predictions=0, which holds any"
    return "look at rows with jaxenc data --inspect: many short ones, or text without words that may be chosen"
