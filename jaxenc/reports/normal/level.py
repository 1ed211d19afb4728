"""Where the loss stands: beside the reference, on the plateau of word frequencies, or lower than text allows."""

import math
from collections.abc import Iterator

from jaxenc.findings import OK, WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence, neighbours, position
from jaxenc.reports.normal.reference import BEYOND, Reference

# A healthy run may take longer than the reference: its model may be larger, its batches smaller or larger, its text another. So a run that
# still trains is compared with the reference after a third as many tokens, and one that has ended with the reference after as many.
SLOWER = 3.0
SHARE = 0.5  # of that position: a run below it is late
SCATTER = 0.03  # positions: of the evaluations of tiny runs
AFTER_WARMUP = 2.0  # times the warm-up, during which any run may stay on the plateau
STANDS_STILL = 0.1  # positions gained in the last third of the steps: references that leave the plateau gain 0.3 and more
# In positions. The references end at 2.1 or less. 2 nats after 800,000 steps (google-research/bert#968) would be 2.4 on their text, and 1.5
# nats 2.6. Text that repeats gets lower, and so does a label that the input shows.
LOWEST = 4.0
GUESSED = 0.95  # accuracy on held-out tokens; google-research/bert#557 has 0.88 after 300,000 steps on a million lines


def stands(run: Evidence, reference: Reference | None) -> Iterator[Finding]:
    """One line that says where the loss is, and what it was compared with. Always OK."""
    if not len(run.loss):
        return
    step, counts, settings = int(run.loss.steps[-1]), run.text.counts, run.settings
    where = f"{run.named} {run.loss.last:.2f} at step {step:,} of {settings.steps:,}, {settings.tokens(step) / 1e6:,.1f} M tokens"
    if not counts:
        yield Finding(OK, "training", f"{where}; no count baselines to compare it with ({run.text.missing})")
        return
    own, low = position(run.loss.last, counts, run.kind), neighbours(counts, run.kind)
    where += f": position {own:.2f}, where 0 is word frequencies ({counts['unigram']:.2f}) and 1 neighbours ({low:.2f})"
    if reference is None:
        yield Finding(OK, "training", f"{where}; no reference curve has objective.kind={run.kind}")
        return
    theirs = reference.at(settings.tokens(step))
    beside = f"{theirs:.2f} after as many tokens" if math.isfinite(theirs) else f"first measured at {reference.tokens[0] / 1e6:,.1f} M"
    yield Finding(OK, "training", f"{where}; {reference.recipe}, the reference: {beside}, {reference.positions[-1]:.2f} at its end")


def plateau(run: Evidence, reference: Reference | None) -> Iterator[Finding]:
    """A loss that stays at the frequencies of words.

    Every masked model stays there for a while (google-research/bert#746, NVIDIA/Megatron-LM#29, codertimo/BERT-pytorch#49: about 7 nats),
    through the warm-up and for a time after it. It is a warning when the warm-up is long over, the last third of the steps gained less
    than STANDS_STILL, and the reference was at twice the position after a third as many tokens; without a reference, when the run has
    ended.
    """
    loss, counts = run.loss, run.text.counts
    if not counts or not len(loss) or run.step < AFTER_WARMUP * run.warm:
        return
    own = position(loss.last, counts, run.kind)
    if own > BEYOND or _gained(run) > STANDS_STILL:
        return
    theirs = reference.at(_tokens(run)) if reference else BEYOND if run.step >= run.settings.steps else math.nan
    if theirs > 0 and own < SHARE * theirs - SCATTER:  # never of NaN
        beside = f"unigram counts give {counts['unigram']:.2f}, with the left neighbour {counts['left']:.2f}"
        normal = f"; {reference.recipe} was at position {theirs:.2f} after {_tokens(run) / 1e6:,.1f} M" if reference else ""
        read = run.settings.tokens(run.step) / 1e6
        what = f"{run.named} is {loss.last:.2f} after {read:,.1f} M tokens and hardly falls: {beside}{normal}"
        fix = f"{_other_rate(run, reference)}, set optim.warmup to a tenth of the steps, raise train.batch, or change model.init_scale"
        yield Finding(WARNING, "plateau", what, fix)


def behind(run: Evidence, reference: Reference | None) -> Iterator[Finding]:
    """A run that is past the plateau and at less than half the position of the reference, long after its warm-up."""
    counts, loss = run.text.counts, run.loss
    if not reference or not counts or not len(loss) or run.step < max(AFTER_WARMUP * run.warm, run.settings.steps / 2):
        return
    own, theirs = position(loss.last, counts, run.kind), reference.at(_tokens(run))
    if BEYOND < own < SHARE * theirs:
        what = f"position {own:.2f}, and {reference.recipe} was at {theirs:.2f} after {_tokens(run) / 1e6:,.1f} M tokens"
        fix = f"{_other_rate(run, reference)}, or use smaller batches"
        yield Finding(WARNING, "slow", what, fix)


def too_low(run: Evidence) -> Iterator[Finding]:
    """A held-out loss that no text allows: the input shows the label, or the held-out text repeats itself or the training text."""
    held_out = run.held_out_of(*run.names)
    if not len(held_out):
        return
    own = position(held_out.last, run.text.counts, run.kind) if run.text.counts else 0.0
    right = run.held_out_of(*(name.replace("_loss", "_accuracy") for name in run.names))
    if own > LOWEST or (len(right) and right.last > GUESSED):
        share = f", {right.last:.1%} right" if len(right) else ""
        what = f"held-out {run.named} is {held_out.last:.2f}{share}: lower than text allows"
        fix = "look for text that repeats (jaxenc data --inspect DIR), and for labels that the input shows"
        yield Finding(WARNING, "loss too low", what, fix)


def _other_rate(run: Evidence, reference: Reference | None) -> str:
    """Advice on the learning rate: both too low and too high a rate leave a network on the plateau."""
    lower = reference is not None and run.phase.lr > 2 * reference.lr
    return f"{'lower' if lower else 'raise'} optim.lr ({run.phase.lr:g}{f', the reference {reference.lr:g}' if reference else ''})"


def _tokens(run: Evidence) -> float:
    """The tokens after which the reference is compared with the run."""
    return run.settings.tokens(run.step) / (SLOWER if run.step < run.settings.steps else 1.0)


def _gained(run: Evidence) -> float:
    """Positions gained in the last third of the steps, between the medians of its two halves; inf where there are too few numbers."""
    loss = run.train_of(*run.names) if len(run.train_of(*run.names)) else run.loss
    start = run.step * 2 / 3
    halves = [loss.between(start, (start + run.step) / 2), loss.between((start + run.step) / 2, run.step)]
    if not all(map(len, halves)):
        return math.inf
    before, after = (position(half.median, run.text.counts, run.kind) for half in halves)
    return after - before
