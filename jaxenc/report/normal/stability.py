"""Whether training is stable: losses that rise, steps that are skipped, rates that are too high or never reached."""

from collections.abc import Iterator

import numpy as np

from jaxenc.findings import PROBLEM, WARNING, Finding
from jaxenc.report.normal.history import History
from jaxenc.report.normal.series import WINDOW, Series

# Of the fall from the first loss to the lowest, in running medians of WINDOW rows. Healthy runs rise by 0.05 and less; facebookresearch/
# fairseq#1533 went from 1.8 back to 10.1, its whole fall.
ROSE = 0.25
NOISE = 4.0  # standard deviations of the rows around their median: less is chance
SKIPPED = 0.01  # of the steps: with bfloat16 or float32 products a healthy run has none
SPIKE = 0.2  # of the fall: a row this much above the median of the WINDOW rows before it
SPIKES = 3  # after the warm-up: bert/small has spikes while its rate rises, and none after it
GREW = 30.0  # times the median of the gradient's norm after the warm-up
ABOVE = 0.05  # nats
ROUGH = 0.02  # of the loss: the noise of the rows around their median
LOWER = "lower optim.lr (a third of it first), lengthen optim.warmup, set optim.clip=1.0; go on from before the rise with --continue-from"


def divergence(run: History) -> Iterator[Finding]:
    """A loss that fell and has risen again for good, or steps that are not finite. Going on does not help, so it is a problem."""
    skipped = run.train_of("skipped")
    if len(skipped) and skipped.last > max(1.0, SKIPPED * run.step):
        last = skipped.between(run.step * 0.9, run.step)
        still = len(last) > 1 and last.last > last.values[0]
        what = f"{int(skipped.last):,} of {run.step:,} steps were not finite and skipped{', the last of them just now' if still else ''}"
        yield Finding(PROBLEM if still else WARNING, "divergence", what, LOWER)
    loss = _of_phase(run)
    smooth = loss.smooth
    if not len(smooth):
        return
    lowest = int(np.argmin(smooth.values))
    rise, fall = smooth.last - smooth.values[lowest], loss.values[0] - smooth.values[lowest]
    if rise > max(ROSE * fall, NOISE * _noise(loss)) and fall > 0:
        what = f"the training loss was {smooth.values[lowest]:.2f} at step {int(smooth.steps[lowest]):,} and is {smooth.last:.2f} now"
        yield Finding(PROBLEM, "divergence", what, LOWER)
    yield from _norms(run)


def rate_too_high(run: History) -> Iterator[Finding]:
    """Signs of a learning rate that is too high: a loss above its start or above the frequencies of words once the warm-up is over, and
    spikes after it.

    A gradient that is clipped at every step is none: ELECTRA's, whose second loss weighs 50, is.
    """
    loss = _of_phase(run)
    after = loss.between(max(run.warm, loss.steps[0]) if len(loss) else 0, run.step)
    if len(after) < WINDOW:
        return
    rate = f"optim.lr is {run.phase.lr:g}"
    tokens = run.train_of(*run.names).between(run.warm, run.step).smooth if run.names else Series.of((), "")
    unigram = run.text.counts.get("unigram", np.inf)
    level = float(np.median(after.values[-WINDOW:]))
    if level > loss.values[0]:
        yield Finding(
            PROBLEM, "learning rate too high", f"the training loss is {level:.2f} and began at {loss.values[0]:.2f}; {rate}", LOWER
        )
    elif len(tokens) and run.step > 3 * run.warm and tokens.last > unigram + ABOVE and _rough(run):
        what = f"{run.named} stays at {tokens.last:.2f}, above the {unigram:.2f} of word frequencies, and jumps; {rate}"
        yield Finding(WARNING, "learning rate too high", what, LOWER)
    elif (found := spikes(loss, run.warm)) >= SPIKES:
        what = f"the training loss jumped {found} times after the warm-up; {rate}"
        yield Finding(WARNING, "learning rate too high", what, LOWER)


def rate_too_low(run: History) -> Iterator[Finding]:
    """A warm-up that takes the whole of its phase: the rate never reaches optim.lr."""
    for number, phase in enumerate(run.plan):
        if phase.warmup >= phase.schedule_steps and run.optim.schedule != "slanted":
            where = f"phase {number + 1}: " if len(run.plan) > 1 else ""
            what = (
                f"{where}the warm-up has {phase.warmup:,} steps and the schedule {phase.schedule_steps:,}: the rate never reaches optim.lr"
            )
            yield Finding(WARNING, "learning rate too low", what, "set optim.warmup to a tenth of the steps")


def spikes(loss: Series, after: int) -> int:
    """How many rows after step `after` are more than SPIKE of the fall above the median of the WINDOW rows before them; rows that follow
    such a row at once count with it."""
    fall = loss.values[0] - loss.values.min()
    above = [
        loss.values[i] - np.median(loss.values[i - WINDOW : i]) > SPIKE * fall and loss.steps[i] > after for i in range(WINDOW, len(loss))
    ]
    return sum(now and not before for before, now in zip([False, *above], above, strict=False))


def _norms(run: History) -> Iterator[Finding]:
    """A gradient whose norm grew far above what it was."""
    norms = _within(run, run.train_of("gradient_norm")).between(run.warm, run.step)
    if len(norms) >= 4 * WINDOW:
        before, now = float(np.median(norms.values[:-WINDOW])), float(np.median(norms.values[-WINDOW:]))
        if now > GREW * before:
            what = f"the norm of the gradient is {now:.2g}, and was {before:.2g} for most of the run"
            yield Finding(WARNING, "divergence", what, LOWER)


def _of_phase(run: History) -> Series:
    """The whole training loss in the phase of the last step: another phase has other rows, and so another loss."""
    return _within(run, run.train_of("loss"))


def _within(run: History, numbers: Series) -> Series:
    return numbers.between(run.phase.start, run.step)


def _noise(loss: Series) -> float:
    """The standard deviation of the rows around their running median, from the median of their distances, which spikes do not move."""
    return 1.4826 * float(np.median(np.abs(loss.values[WINDOW - 1 :] - loss.smooth.values))) if len(loss) >= WINDOW else 0.0


def _rough(run: History) -> bool:
    """Whether the training loss jumps from row to row."""
    after = _of_phase(run).between(run.warm, run.step)
    return len(after) >= WINDOW and _noise(after) > ROUGH * abs(after.last)
