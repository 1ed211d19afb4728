"""Whether the generator and the discriminator of replaced tokens (Clark et al. 2020) suit each other."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jaxenc.findings import WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence
from jaxenc.reports.normal.reference import Reference, size

# Generators of a quarter to half of the discriminator's size work best (Clark et al. 2020, section 3.2 and figure 3); one of its size is
# worse, and the published small model has one. Size is layers times width squared: half the width is a quarter of it.
LARGEST = 1.0
# A masked token is replaced unless the generator draws the right one. A healthy run has 0.45 to 0.95
# (google-research/electra#49: about 6 % of the tokens at 15 % masked); below this the discriminator has too few examples.
FEW_REPLACED = 0.25
CHANCE = 0.53  # area under the ROC curve: no better than guessing; 0.500 in the runs that configs/electra/small_quick.py reports
FELL = 0.05  # below the best area so far: in electra/small_quick it fell by 0.02 while the generator left its plateau, and came back
LONGER = 3.0  # times the tokens after which the area of the reference was above CHANCE


def generator(run: Evidence) -> Iterator[Finding]:
    """A generator that is too strong: larger than the discriminator, or right so often that hardly a token is replaced."""
    ratio = _ratio(run.model)
    replaced, masked = run.train_of("replaced"), run.train_of("mask_rate")
    share = float(np.median(replaced.values[-10:]) / np.median(masked.values[-10:])) if len(replaced) and len(masked) else math.nan
    found = []
    if ratio > LARGEST:
        found.append(f"it has {ratio:.1f} times the discriminator's layers and widths (layers x width^2)")
    if share < FEW_REPLACED:
        found.append(f"only {share:.0%} of the masked tokens are replaced, the others it guesses right")
    if (fell := _fell(run)) > FELL:
        found.append(f"the discriminator's area under the ROC curve fell by {fell:.2f} from its best")
    if found:
        fix = "make model.generator_width a quarter to half of model.width, with as many layers; start again"
        yield Finding(WARNING, "generator too strong", "; ".join(found), fix)


def discriminator(run: Evidence, reference: Reference | None) -> Iterator[Finding]:
    """A discriminator that gives every token one logit: it says `original` always, and its area under the ROC curve is at chance.

    Never saying `replaced` is not a sign by itself: 85 to 94 % of the tokens are original, and early in training every healthy one does.
    """
    area = run.held_out_of("rtd_auc")
    if not len(area) or not reference or "rtd_auc" not in reference.curves or run.step < 2 * run.warm:
        return
    above = [tokens for tokens, value in zip(reference.tokens, reference.curves["rtd_auc"], strict=True) if value > CHANCE]
    if above and area.last < CHANCE and run.settings.tokens(run.step) > LONGER * above[0]:
        recall = run.held_out_of("rtd_recall")
        says = f" and finds {recall.last:.1%} of the replaced tokens" if len(recall) else ""
        what = f"the area under the ROC curve is {area.last:.3f}{says}: every token gets one logit; {reference.recipe} was above {CHANCE}"
        fix = "lengthen optim.warmup (2,000 steps and more), lower optim.lr, and keep mask_share at 0.85 or above"
        yield Finding(WARNING, "discriminator", what, fix)


def _fell(run: Evidence) -> float:
    """By how much the held-out area is below its best, in the last two evaluations; 0 where it is not."""
    area = run.held_out_of("rtd_auc")
    return float(area.values.max() - area.values[-2:].max()) if len(area) > 2 else 0.0


def _ratio(model: Mapping[str, Any]) -> float:
    """The size of the generator by that of the discriminator; 0 where the model has no such fields."""
    nested = model.get("generator")
    own = nested if isinstance(nested, Mapping) else {name: model.get(f"generator_{name}") for name in ("width", "layers")}
    other = model.get("discriminator") if isinstance(nested, Mapping) else model
    return size(own) / size(other) if size(own) > 1 and isinstance(other, Mapping) else 0.0
