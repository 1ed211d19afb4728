"""events.jsonl: what a run writes about its starts, saves and stops, and what a resume makes of the file."""

import dataclasses
import json
from pathlib import Path

import pytest

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.reports.goodput import goodput
from jaxenc.training import events
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig
from tests import tiny

NAMES = ["start", "compile", "steps", "save", "checkpoint", "steps", "save", "checkpoint", "evaluation", "stop"]


def recipe(data: Path, steps: int) -> Run:
    return Run(
        model=tiny.MODEL,
        data=DataConfig(path=str(data), length=20),
        train=TrainConfig(steps=steps, batch=8, precision="float32"),
        optim=OptimConfig(schedule="constant", warmup=0),
        checkpoint=CheckpointConfig(every=2),
        eval=EvalConfig(every=0, batch=8),
        log=LogConfig(every=1, tensorboard=False),
    )


@pytest.mark.usefixtures("one_device")
def test_a_resumed_run_goes_on_in_its_events(data: Path, tmp_path: Path) -> None:
    """Every event of two starts, their order, sizes and seconds. A checkpoint may be complete before or after what comes next. The second
    start finds rows of metrics.jsonl after its checkpoint, as a kill leaves them, and an unfinished event."""
    workdir = tmp_path / "run"
    run = recipe(data, 4)
    pretrain(run, workdir)
    first = events.read(workdir / events.EVENTS)
    order = lambda rows: [row["event"] for row in rows if row["event"] != "checkpoint"]
    assert order(first) == [name for name in NAMES if name != "checkpoint"]
    assert [row["after"] for row in first if row["event"] == "steps"] == [0, 2]
    saved = {row["step"]: row for row in first if row["event"] == "checkpoint"}
    files = lambda step: sum(path.stat().st_size for path in (workdir / "checkpoints" / str(step)).rglob("*") if path.is_file())
    assert {step: row["bytes"] for step, row in saved.items()} == {2: files(2), 4: files(4)}
    start = first[0]
    assert (start["kind"], start["step"], start["reached"], start["steps"], start["processes"]) == ("fresh", 0, 0, 4, 1)
    (phase,) = start["phases"]
    assert (phase["batch"], phase["length"], phase["end"]) == (8, 20, 4) and phase["flops"] > 1e3
    spent = goodput(first)
    assert spent.wall >= sum(value for name, value in spent.seconds.items() if name != "other") and 0 < spent.share < 1

    metrics = workdir / "metrics.jsonl"
    lost = json.dumps({"step": 7, "split": "train", "loss": 1.0}) + "\n"
    metrics.write_text(metrics.read_text() + lost)
    before = (workdir / events.EVENTS).read_bytes()
    (workdir / events.EVENTS).write_bytes(before + b'{"time": 17')
    assert events.read(workdir / events.EVENTS) == first
    pretrain(dataclasses.replace(run, train=dataclasses.replace(run.train, steps=6)), workdir)
    assert (workdir / events.EVENTS).read_bytes().startswith(before)
    second = events.read(workdir / events.EVENTS)[len(first) :]
    assert order(second) == ["start", "compile", "steps", "save", "evaluation", "stop"]
    assert (second[0]["kind"], second[0]["step"], second[0]["reached"]) == ("resume", 4, 7)
    assert second[-1]["reason"] == "finished" and goodput([*first, *second]).lost_steps == 3
    assert lost not in metrics.read_text()


def test_time_that_training_stands_still_is_not_of_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 seconds: 7 compiling, 11 saving, and a row of the steps after EVERY seconds without another event."""
    clock = [0.0]
    monkeypatch.setattr(events.time, "monotonic", lambda: clock[0])

    def after(seconds: float) -> None:
        clock[0] += seconds

    log = events.Events(tmp_path)
    log.start(10, 3.0, {})
    log.pause()
    after(7)
    log.resume("compile", 11)
    for step in range(11, 51):
        after(1)
        log.stepped(step)
    with log.during("save", 50):
        after(11)
    after(5)
    log.stepped(55)
    with pytest.raises(KeyError), log.failing(), log.during("evaluation", 55):
        after(9)
        raise KeyError
    log.close()
    rows = [json.loads(line) for line in (tmp_path / events.EVENTS).read_text().splitlines()]
    assert [(row["event"], row["step"], row["seconds"]) for row in rows] == [
        ("start", 10, 3.0),
        ("compile", 11, 7.0),
        ("steps", 40, 30.0),
        ("steps", 50, 10.0),
        ("save", 50, 11.0),
        ("steps", 55, 5.0),
        ("stop", 55, 0.0),
    ]
    assert rows[-1]["reason"] == "KeyError"


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"time": 1, "event": "steps", "step": 3, "seconds": 1}', '{"time": NaN, "event": "x", "step": 1, "seconds": 0}']
)
def test_a_line_that_is_no_event_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / events.EVENTS
    path.write_text('{"time": 1, "event": "of later versions", "step": 1, "seconds": 0}\n' + line + "\n")
    with pytest.raises(UserError, match=r"events.jsonl:2: is not an event \(.*\); remove the line"):
        events.read(path)
    assert events.read(tmp_path / "none") == []
