"""Whether the run reads its text too often, whether the text holds things twice, and what the held-out numbers are worth."""

from collections.abc import Iterator

import numpy as np

from jaxenc.findings import WARNING, Finding
from jaxenc.reports.normal.evidence import Evidence

# Up to 4 epochs are worth nearly as much as new text, and from 16 on little (Muennighoff et al. 2023, for language models). Masks are drawn
# anew in each epoch, so an encoder gains for longer: BERT read its corpus 40 times (Devlin et al. 2018), bert/small its 11 times. So a
# number of epochs alone does not warn.
RISE = 0.02  # of the lowest held-out loss; ablations/left_to_right rose by 0.008 in 5,000 steps
GAP = 0.15  # of the held-out loss: by how much the training loss is lower
TWICE = 0.3  # of the tokens, in sentences that occurred before (docstrings: 0.04; google-research/bert#746 had thousands of equal lines)
KNOWN = 0.3  # of the held-out tokens, in sentences of the training text (docstrings: 0.01)
LOWER = 0.15  # of the training loss: by how much the held-out loss is lower; dropout explains some of it
UNSEEN_STEPS = 1000  # that a run may go without an evaluation
DOCUMENTS = "build the data again with --drop-duplicates exact, or near"
# --drop-duplicates compares documents, and keeps a sentence that many different ones hold.
SENTENCES = (
    "build the data again with --drop-duplicates near; where that drops little, different documents share sentences, such as headers: take "
    "these out of the text, or keep each line once (awk '!NF || !seen[$0]++' OLD > NEW)"
)


def overfitting(run: Evidence) -> Iterator[Finding]:
    """The held-out loss rises while the training loss falls: the network learns the text by heart."""
    held_out, train = run.held_out_of(*run.names), run.train_of(*run.names).smooth
    if len(held_out) < 3 or not len(train):
        return
    lowest = int(np.argmin(held_out.values))
    then = train.between(0, float(held_out.steps[lowest]))
    rises = min(held_out.values[-2:]) > (1 + RISE) * held_out.values[lowest] and len(held_out) - lowest > 2
    apart = held_out.last - train.last > GAP * held_out.last
    if rises and apart and (not len(then) or train.last < then.last):
        epochs = f", {_epochs(run):,.0f} times the text" if run.text.tokens else ""
        what = (
            f"held-out {run.named} was {held_out.values[lowest]:.2f} at step {int(held_out.steps[lowest]):,} and is {held_out.last:.2f}, "
            f"in training {train.last:.2f}{epochs}"
        )
        yield Finding(WARNING, "data repeated", what, "add text, stop earlier, use a smaller model, or raise model.dropout")


def duplicates(run: Evidence) -> Iterator[Finding]:
    """Text that is there twice: in the training split, or in both."""
    if run.text.repeated > TWICE:
        what = f"{run.text.repeated:.0%} of the training tokens are in sentences that occurred before"
        whole = run.text.copied > run.text.repeated / 2
        yield Finding(WARNING, "data repeated", what, DOCUMENTS if whole else SENTENCES)
    if run.text.known > KNOWN:
        what = f"{run.text.known:.0%} of the held-out tokens are in sentences of the training text: held-out numbers are too good"
        yield Finding(WARNING, "held-out text", what, SENTENCES)


def held_out(run: Evidence) -> Iterator[Finding]:
    """No evaluation for long, or held-out numbers that are much better than those of training."""
    losses = run.held_out_of(*run.names) if run.names else run.held_out_of("loss")
    if not any(row["split"] == "held_out" for row in run.rows) and run.step >= UNSEEN_STEPS:
        what = f"no evaluation in {run.step:,} steps (eval.every is {run.settings.eval.every:,})"
        yield Finding(WARNING, "held-out text", what, "set eval.every to a tenth of the steps or less (it may change on a resume)")
    train = run.train_of(*run.names).smooth if run.names else losses
    if len(losses) and len(train) and not run.objective.get("final_rate") and losses.last < (1 - _allowed(run)) * train.last:
        what = f"held-out {run.named} is {losses.last:.2f}, in training {train.last:.2f}: the held-out text is easier, or known"
        yield Finding(WARNING, "held-out text", what, "hold out whole documents at random, without duplicates (--drop-duplicates near)")


def _allowed(run: Evidence) -> float:
    return LOWER + (run.model.get("dropout", 0.0) or 0.0)


def _epochs(run: Evidence) -> float:
    return run.settings.tokens(run.step) / max(run.text.tokens, 1)
