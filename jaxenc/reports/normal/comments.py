"""Comments on a run, from its work directory: is its loss normal, and if not, what may be wrong and what to do."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxenc import cache
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.findings import OK, PROBLEM, WARNING, Finding
from jaxenc.reports import history
from jaxenc.reports.history import Settings
from jaxenc.reports.normal import detection, level, masks, rates, repeats, speed, stability, text
from jaxenc.reports.normal.evidence import LOSSES, Evidence, neighbours
from jaxenc.reports.normal.reference import Reference, nearest, references
from jaxenc.reports.normal.text import Text
from jaxenc.training import prepare, record
from jaxenc.training.record import METRICS

FEW = 5  # training rows below which nothing is judged


def comments(workdir: str | pathlib.Path, read: Callable[[DataConfig], Text] = text.read_here) -> tuple[Finding, ...]:
    """What there is to say of the run in `workdir`, a path or a URL: first where its loss stands and what it was compared with, then what
    looks wrong. () where no run has trained.

    read: tells the facts of the run's text. A metrics.jsonl or config.json that cannot be read is a finding. Raises UserError for a URL
    that cannot be reached.
    """
    with cache.at_hand(workdir, (METRICS, prepare.CONFIG)) as folder:
        if not (folder / METRICS).is_file():
            return ()
        try:
            rows, settings = record.rows(folder), history.settings(folder / prepare.CONFIG)
        except UserError as error:
            return (Finding(WARNING, "training", f"not judged: {error.renamed(folder, workdir)}"),)
    return of_run(rows, settings, read)


def of_run(rows: Sequence[Mapping[str, Any]], settings: Settings, read: Callable[[DataConfig], Text]) -> tuple[Finding, ...]:
    """The comments on a run with these rows of metrics.jsonl, as `comments`. A fine-tuning is not judged."""
    kind = str(settings.fields.get("objective", {}).get("kind", ""))
    if kind not in LOSSES:
        return (Finding(OK, "training", f"objective.kind={kind or 'unknown'} is not judged: reference curves are of pretraining"),)
    found = read(settings.data)
    if set(LOSSES[kind][1]) <= found.counts.keys() and neighbours(found.counts, kind) >= found.counts["unigram"]:
        # There is no scale between them: held-out text that is unlike the training text, or too little of it.
        found = dataclasses.replace(found, counts={}, missing="neighbours predict its held-out text no better than word frequencies")
    return judge(Evidence(rows, settings, found), references())


def judge(run: Evidence, known: Sequence[Reference]) -> tuple[Finding, ...]:
    """The comments on a run whose text was read, beside the references `known`."""
    rows = sum(row["split"] == "train" for row in run.rows)
    if rows < FEW:
        return (Finding(OK, "training", f"{rows} rows of training numbers up to step {run.step:,}: too few to judge"),)
    reference = nearest(run, known)
    unstable = [*stability.divergence(run), *rates.too_high(run, reference)]
    broken = any(one.level == PROBLEM for one in unstable)
    return (
        *level.stands(run, reference),
        *unstable,
        *rates.too_low(run, reference),
        # What follows from a loss that diverges is not a finding of its own.
        *(() if unstable else level.plateau(run, reference)),
        *(() if unstable else level.behind(run, reference)),
        *level.too_low(run),
        *masks.rate(run),
        *masks.padding(run),
        *detection.generator(run),
        *(() if unstable else detection.discriminator(run, reference)),
        *(() if broken else repeats.overfitting(run)),
        *repeats.duplicates(run),
        *repeats.held_out(run),
        *speed.throughput(run),
    )
