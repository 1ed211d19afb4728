"""Whether the loss rises for good, and whether steps are skipped."""

from collections.abc import Iterator

import numpy as np

from jaxenc.findings import PROBLEM, WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence
from jaxenc.reports.normal.series import WINDOW, Series

# A share of the fall from the first loss to the lowest, in running medians of WINDOW rows. Healthy runs rise by 0.05 and less;
# facebookresearch/fairseq#1533 went from 1.8 back to 10.1, its whole fall.
ROSE = 0.25
NOISE = 4.0  # standard deviations of the rows around their median: less is chance
SKIPPED = 0.01  # of the steps: with bfloat16 or float32 products a healthy run has none
GREW = 30.0  # times the median of the gradient's norm after the warm-up
LOWER = "lower optim.lr (a third of it first), lengthen optim.warmup, set optim.clip=1.0; go on from before the rise with --continue-from"


def divergence(run: Evidence) -> Iterator[Finding]:
    """A loss that fell and has risen again for good, or steps that are not finite. Going on does not help, so it is a problem."""
    skipped = run.train_of("skipped")
    if len(skipped) and skipped.last > max(1.0, SKIPPED * run.step):
        last = skipped.between(run.step * 0.9, run.step)
        still = len(last) > 1 and last.last > last.values[0]
        what = f"{int(skipped.last):,} of {run.step:,} steps were not finite and skipped{', the last of them just now' if still else ''}"
        yield Finding(PROBLEM if still else WARNING, "divergence", what, LOWER)
    loss = of_phase(run)
    smooth = loss.smooth
    if not len(smooth):
        return
    lowest = int(np.argmin(smooth.values))
    rise, fall = smooth.last - smooth.values[lowest], loss.values[0] - smooth.values[lowest]
    if rise > max(ROSE * fall, NOISE * noise(loss)) and fall > 0:
        what = f"the training loss was {smooth.values[lowest]:.2f} at step {int(smooth.steps[lowest]):,} and is {smooth.last:.2f} now"
        yield Finding(PROBLEM, "divergence", what, LOWER)
    norms = run.train_of("gradient_norm").between(max(run.phase.start, run.warm), run.step)
    if len(norms) >= 4 * WINDOW:
        before, now = float(np.median(norms.values[:-WINDOW])), float(np.median(norms.values[-WINDOW:]))
        if now > GREW * before:
            what = f"the norm of the gradient is {now:.2g}, and was {before:.2g} for most of the run"
            yield Finding(WARNING, "divergence", what, LOWER)


def of_phase(run: Evidence) -> Series:
    """The whole training loss in the phase of the last step: another phase has other rows, and so another loss."""
    return run.train_of("loss").between(run.phase.start, run.step)


def noise(loss: Series) -> float:
    """The standard deviation of the rows around a curve, from the median of the changes from row to row, which neither spikes nor a steady
    fall move."""
    changes = np.diff(loss.values)
    return 1.4826 * float(np.median(np.abs(changes - np.median(changes)))) / np.sqrt(2) if len(changes) else 0.0
