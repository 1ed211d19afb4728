"""Runs that were never trained, for the tests of single checks: a BERT of 400 steps whose numbers are given."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxenc.data.sources import DataConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.reports.history import Settings
from jaxenc.reports.normal.evidence import Evidence
from jaxenc.reports.normal.reference import Reference
from jaxenc.reports.normal.text import Text
from jaxenc.training.phases import Phase
from jaxenc.training.settings import EvalConfig

COUNTS = {"unigram": 7.0, "left": 5.5, "left_right": 5.0}
STEPS, EVERY, BATCH, LENGTH, WARMUP = 400, 10, 64, 32, 40
Curve = Callable[[int], float]


def history(loss: Curve, held_out: Curve | None = None, numbers: Mapping[str, Curve] | None = None, **changes: Any) -> Evidence:
    """loss, held_out: the token loss by step; held_out: every 50 steps, None = never. numbers: others of the training rows. changes: fields
    of Evidence, of its objective (`rate`) and of its optimizer (`lr`)."""
    steps = range(EVERY, STEPS + 1, EVERY)
    extra = numbers or {}
    rows: list[dict[str, Any]] = [
        {"step": 1, "split": "train", "loss": loss(1), "mlm_loss": loss(1), **{name: of(1) for name, of in extra.items()}}
    ]
    for step in steps:
        rows.append({"step": step, "split": "train", "loss": loss(step), "mlm_loss": loss(step)})
        rows[-1] |= {name: of(step) for name, of in extra.items()}
        if held_out and step % 50 == 0:
            rows.append({"step": step, "split": "held_out", "mlm_loss": held_out(step)})
    objective = {"kind": "mlm", "rate": changes.pop("rate", 0.15), "max_predictions": changes.pop("max_predictions", 0)}
    warmup = changes.pop("warmup", WARMUP)
    made = Evidence(
        rows=rows,
        settings=Settings(
            fields={"objective": objective, "model": {"kind": "bert", "width": 64, "layers": 2, "dropout": 0.0}},
            data=DataConfig(),
            optim=OptimConfig(),
            eval=EvalConfig(every=50),
            plan=(Phase(0, STEPS, LENGTH, BATCH, 0, 1e-3, warmup, 0, STEPS),),
        ),
        text=Text(COUNTS, tokens=1_000_000),
    )
    return changed(made, **changes)


def changed(run: Evidence, **changes: Any) -> Evidence:
    """`run` with other fields, of Evidence, of its Settings, or `objective` and `model` of its config.json."""
    own = {name: changes.pop(name) for name in ("objective", "model") if name in changes}
    parts = {name: changes.pop(name) for name in ("optim", "eval", "plan", "data") if name in changes}
    settings = dataclasses.replace(run.settings, fields={**run.settings.fields, **own}, **parts)
    return dataclasses.replace(run, settings=settings, **changes)


def falling(step: int) -> float:
    """From 8 nats to 4: past the neighbours at the end."""
    return 4 + 4 * (1 - step / STEPS)


def reference(positions: Sequence[float] = (0.2, 0.6, 1.2, 1.8), tokens_per_step: int = BATCH * LENGTH, **changes: Any) -> Reference:
    """A reference that was at `positions` after each hundred steps."""
    unigram, low = COUNTS["unigram"], COUNTS["left_right"]
    made = Reference(
        recipe="bert/test", objective="mlm", model={"kind": "bert", "width": 64, "layers": 2}, corpus="", tokenizer={}, hardware="",
        versions="", date="", command="", tokens_per_step=tokens_per_step, steps=400, warmup=40, lr=1e-3, counts=COUNTS,
        step=[100 * (number + 1) for number in range(len(positions))],
        curves={"mlm_loss": [unigram - place * (unigram - low) for place in positions]},
    )  # fmt: skip
    return dataclasses.replace(made, **changes)
