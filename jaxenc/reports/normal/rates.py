"""Whether the learning rate is too high or too low."""

from collections.abc import Iterator

import numpy as np

from jaxenc.findings import PROBLEM, WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence
from jaxenc.reports.normal.reference import Reference
from jaxenc.reports.normal.series import WINDOW, Series
from jaxenc.reports.normal.stability import LOWER, noise, of_phase

SPIKE = 0.2  # of the fall from the first loss to the lowest: a row this much above the median of the WINDOW rows before it
FREAK = 6.0  # standard deviations of the rows around their median
SPIKES = 3  # after the warm-up: a healthy run may have one
ABOVE = 0.04  # nats that held-out losses stay above the unigram counts; the references are below them from twice the warm-up on
WARM = 3  # times the warm-up
HIGHER = 5.0  # times the rate of the reference, which has a larger or smaller network: published rates of one family differ by 5
NEAR = -0.1  # position: as good as at the frequencies of words
FAR = 0.3  # of the way from the first loss to the unigram counts: with more still to go, a loss is far from them


def too_high(run: Evidence, reference: Reference | None) -> Iterator[Finding]:
    """A loss above its start, one that settles above the frequencies of words, or one that keeps jumping once the warm-up is over.

    A network whose weights a high rate has spoiled predicts a little worse than word frequencies do, for good. That alone proves nothing,
    since counts are of all tokens and not of the predicted ones alone: the loss must also have jumped after the warm-up, or the rate be
    more than HIGHER times that of the reference. A gradient that is clipped at every step is not a sign: with a second loss of weight 50
    (Clark et al. 2020) a healthy run clips at every step.
    """
    loss = of_phase(run)
    after = loss.between(run.warm, run.step)
    if len(after) < WINDOW:
        return
    level, jumps = float(np.median(after.values[-WINDOW:])), spikes(loss, run.warm)
    rate = f"optim.lr is {run.phase.lr:g}"
    if level > loss.values[0] + noise(loss):  # less is chance in a run that has hardly begun
        yield Finding(
            PROBLEM, "learning rate too high", f"the training loss is {level:.2f} and began at {loss.values[0]:.2f}; {rate}", LOWER
        )
        return
    times = run.phase.lr / reference.lr if reference and run.settings.optim.name == "adamw" else 0.0
    held_out = run.held_out_of(*run.names).between(WARM * run.warm, run.step)
    if _settled(run, held_out) and (jumps or times > HIGHER):
        beside = f", {times:.0f} times that of {reference.recipe}" if reference and times > HIGHER else ""
        unigram = run.text.counts["unigram"]
        what = f"held-out {run.named} stays at {held_out.last:.2f}, above the {unigram:.2f} of word frequencies; {rate}{beside}"
        yield Finding(WARNING, "learning rate too high", what, LOWER)
    elif jumps >= SPIKES:
        yield Finding(WARNING, "learning rate too high", f"the training loss jumped {jumps} times after the warm-up; {rate}", LOWER)


def too_low(run: Evidence, reference: Reference | None) -> Iterator[Finding]:
    """A warm-up that takes the whole of its schedule, or a loss that is still far above the frequencies of words after as many tokens as
    the reference had read at its first evaluation near them."""
    for number, phase in enumerate(run.settings.plan):
        if phase.warmup >= phase.schedule_steps and run.settings.optim.schedule != "slanted":
            where = f"phase {number + 1}: " if len(run.settings.plan) > 1 else ""
            what = f"{where}the warm-up has {phase.warmup:,} steps and the schedule {phase.schedule_steps:,}: optim.lr is never reached"
            yield Finding(WARNING, "learning rate too low", what, "set optim.warmup to a tenth of the steps")
            return
    unigram, train = run.text.counts.get("unigram", np.inf), run.train_of(*run.names)
    below = [tokens for tokens, place in zip(reference.tokens, reference.positions, strict=True) if place > NEAR] if reference else []
    if not below or not len(train) or run.step < WARM * run.warm or run.settings.tokens(run.step) < below[0]:
        return
    if run.loss.last - unigram > FAR * (train.values[0] - unigram) > 0:
        what = (
            f"{run.named} began at {train.values[0]:.2f} and is still at {run.loss.last:.2f}, above the {unigram:.2f} of word frequencies"
        )
        yield Finding(
            WARNING, "learning rate too low", what, f"raise optim.lr, which is {run.phase.lr:g}; look at optim.freeze and optim.rates"
        )


def spikes(loss: Series, after: int) -> int:
    """How many rows after step `after` are above the median of the WINDOW rows before them by more than SPIKE of the fall and FREAK times
    the noise; rows that follow such a row at once count with it."""
    high = max(SPIKE * (loss.values[0] - loss.values.min()), FREAK * noise(loss))
    medians = [np.median(loss.values[i - WINDOW : i]) for i in range(WINDOW, len(loss))]
    above = (loss.values[WINDOW:] - medians > high) & (loss.steps[WINDOW:] > after)
    return int(np.sum(above & ~np.append(False, above[:-1])))


def _settled(run: Evidence, held_out: Series) -> bool:
    """Whether the last three held-out losses are above the unigram counts and no longer on their way down to them."""
    train = run.train_of(*run.names)  # none of a sampled softmax, whose loss has another name
    if not run.text.counts or not len(train) or len(held_out) < 3:
        return False
    last, unigram = held_out.values[-3:], run.text.counts["unigram"]
    return bool(last.min() > unigram + ABOVE and last.max() - unigram < FAR * (train.values[0] - unigram))
