"""Run directories of made-up numbers."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxenc import config
from jaxenc.training.events import EVENTS
from jaxenc.training.record import METRICS
from jaxenc.training.run import Run

BEGAN = 1_700_000_000.0


def start(time: float, step: int, seconds: float = 0.0, reached: int = 0, **facts: Any) -> dict[str, Any]:
    """A row `start`; time: seconds after BEGAN."""
    return row(time, "start", step, seconds) | {
        **{"kind": "resume" if step else "fresh", "reached": reached or step, "command": ["jaxenc", "pretrain", "--config", "bert/tiny"]},
        **{"versions": {"python": "3.11", "jax": "0.10.2"}, "device": "cpu", "devices": 1, "processes": 1, "steps": 400},
        **{"phases": [{"start": 0, "end": 400, "batch": 8, "length": 32, "flops": 1e9}], **facts},
    }


def row(time: float, event: str, step: int, seconds: float = 0.0, **facts: Any) -> dict[str, Any]:
    """Any row; time: seconds after BEGAN."""
    return {"time": BEGAN + time, "event": event, "step": step, "seconds": seconds, **facts}


def make(folder: Path, rows: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]] = (), run: Run = Run(), **extra: Any) -> Path:
    """A run directory with these rows; without events it has no events.jsonl. extra: more parts of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRICS).write_text("".join(json.dumps(one) + "\n" for one in rows))
    (folder / "config.json").write_text(json.dumps(config.to_dict(run) | extra))
    if events:
        (folder / EVENTS).write_text("".join(json.dumps(one) + "\n" for one in events))
    return folder


def metrics(steps: int = 400, every: int = 10, **more: float) -> list[dict[str, Any]]:
    """Rows of training every `every` steps with an evaluation every fifth of them; losses fall like 1 / sqrt(step)."""
    found = []
    for step in range(every, steps + 1, every):
        loss = 3 + 5 / math.sqrt(step)
        numbers = {"mlm_accuracy": 0.1 + step / (10 * steps), "mlm_loss": loss, "mask_rate": 0.15, "padding": 0.02}
        clocks = {"gradient_norm": 40 / step, "lr": 1e-3 * (1 - step / steps), "skipped": 0, "tokens_per_second": 5e4 + step, "mfu": 0.31}
        found.append({"step": step, "split": "train", "loss": loss, **numbers, **clocks, **more, "seconds": step / 10})
        if step % (5 * every) == 0:
            found.append({"step": step, "split": "held_out", **numbers, "mlm_predictions": 999, **more, "seconds": step / 10})
    return found


# Of 190 seconds: 10 before the first step, a kill after step 130, away until 100, on from step 100.
EVENTS_OF_A_KILL = [
    start(4, 0, seconds=4),
    row(10, "compile", 1, 6),
    row(30, "steps", 100, 20, after=0),
    row(31, "save", 100, 1),
    row(33, "checkpoint", 100, 3, bytes=5_000_000),
    row(41, "steps", 150, 10, after=100),
    row(46, "evaluation", 150, 5),
    row(56, "steps", 200, 10, after=150),
    start(110, 100, seconds=10, reached=210),
    row(112, "compile", 101, 2),
    row(172, "steps", 400, 60, after=100),
    row(173, "save", 400, 1),
    row(175, "checkpoint", 400, 3, bytes=6_000_000),
    row(185, "evaluation", 400, 12),
    row(190, "stop", 400, 0, reason="finished"),
]
