"""What `jaxenc watch` shows of run directories that were written by hand."""

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from jaxenc.checkpoint import verify
from jaxenc.cli.main import main
from jaxenc.cli.watch import EXAMPLES
from jaxenc.reports import history, verdict, watch
from jaxenc.reports.sparkline import MARKS, sparkline
from jaxenc.reports.watch import Seen
from jaxenc.training.run import Run, to_json
from jaxenc.training.settings import TrainConfig
from tests.terminal import CONTROL, terminal

NOW = 1_000_000.0
STOPPED = {"event": "stop", "step": 300, "seconds": 0.0, "reason": "finished"}


def row(step: int, split: str, seconds: float, **numbers: float) -> dict[str, Any]:
    return {"step": step, "split": split, **numbers, "seconds": seconds}


def train(step: int, **more: float) -> dict[str, Any]:
    """Two steps a second; a loss that falls."""
    numbers = {"loss": 9 - step / 100, "mlm_loss": 9 - step / 100, "mlm_accuracy": 0.1, "padding": 0.0, "gradient_norm": 0.5, "lr": 1e-4}
    return row(step, "train", step / 2, **numbers, skipped=0, tokens_per_second=12_345.6, mfu=0.321, **more)


def make(folder: Path, rows: list[Mapping[str, Any]], events: Sequence[Mapping[str, Any]] = (), age: float = 4, run: Run = Run()) -> Path:
    """A run directory that was last written `age` seconds before NOW, with a checkpoint of step 200 that was written 90 s before."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(to_json(run))
    lines = "".join(json.dumps(one) + "\n" for one in rows)
    (folder / "metrics.jsonl").write_text(lines)
    if events:
        (folder / "events.jsonl").write_text("".join(json.dumps({"time": NOW - age, **one}) + "\n" for one in events))
    step = folder / "checkpoints" / "200"
    step.mkdir(parents=True)
    verify.write_checksums(step, 200)
    for path, seconds in ((step / verify.CHECKSUMS, 90), *((path, age) for path in folder.glob("*.jsonl"))):
        os.utime(path, (NOW - seconds, NOW - seconds))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [train(step) for step in range(100, 301, 100)]
    return make(tmp_path / "run", [*rows, row(200, "held_out", 101.0, mlm_loss=8.5, mlm_accuracy=0.25, mlm_predictions=9)])


def test_a_run_that_trains_in_80_columns(run: Path) -> None:
    assert watch.lines(watch.look(str(run)), NOW, 79) == [
        *watch._wrapped([str(run), "running, wrote 0:00:04 ago"], 79),
        "step 300 of 100,000 (0%)   about 13:50:50 left",
        "loss              6.000                     █▅▁",
        "mlm_loss          6.000  held out    8.500  █▅▁",
        "mlm_accuracy     0.1000  held out   0.2500  ▁▁▁",
        "lr 1.0e-04   tokens/s 12,346   MFU 32.1%   gradient norm 0.5",
        "checkpoint 200, 0:01:30 ago",
    ]


def test_curves_and_columns_line_up_whatever_the_names(tmp_path: Path) -> None:
    """Of numbers with long names, and of runs with names that differ at their ends or take two columns a letter."""
    names = ["short", f"{'a_long_name_' * 6}seed_0", f"{'a_long_name_' * 6}seed_1", "実験の名前" * 8]
    long = {"next_sentence_accuracy": 0.5, "backward_sampled_loss": 1.0}
    seen = [watch.look(str(make(tmp_path / name, [train(step, **long) for step in (100, 200)]))) for name in names]
    for width in (60, 80, 139):
        head, *lines = watch.table(seen, NOW, width)
        assert len({cell_len(line) for line in lines}) == 1 and cell_len(head) == cell_len(lines[0]) <= width
        assert [line.split()[0][-1] for line in lines[1:3]] == ["0", "1"], "told apart"
    rows = [line for line in watch.lines(seen[0], NOW, 79) if line[-1] in "█▁"]
    assert len(rows) == 5 and len({min(map(line.find, set(line) & set("█▁"))) for line in rows}) == 1


@pytest.mark.parametrize("width", [20, 39, 59, 79, 200])
def test_no_line_is_wider_than_the_terminal(run: Path, width: int) -> None:
    seen = watch.look(str(run))
    frames = [watch.lines(seen, NOW, width), watch.lines(Seen("a" * 100), NOW, width), watch.table([seen, Seen("b" * 50)], NOW, width)]
    assert all(len(line) <= width for frame in frames for line in frame)
    assert any("mlm_loss" in line for line in frames[0])


@pytest.mark.parametrize(
    "events, age, words",
    [
        ([], 4, "running, wrote 0:00:04 ago"),
        ([], 200, "running, wrote 0:03:20 ago"),
        ([], 300, "perhaps killed, no line for 0:05:00"),
        ([STOPPED], 300, "finished"),
        ([{**STOPPED, "reason": "preempted"}], 300, "stopped"),
        ([{**STOPPED, "reason": "Diverged"}], 300, "ended with Diverged"),
    ],
)
def test_whether_it_still_writes(events: list[Mapping[str, Any]], age: float, words: str, tmp_path: Path) -> None:
    """A line every 50 seconds is usual here: 200 without one are nothing, 300 are."""
    seen = watch.look(str(make(tmp_path / "run", [train(step) for step in (100, 200, 300)], events, age)))
    assert watch.state(seen, NOW) == words


@pytest.mark.parametrize(
    "events, last, watched, said",
    [
        ([], 300, "running or killed", "Running or killed at step 300 of 400."),
        ([], 400, "finished", "Finished at step 400 of 400."),
        ([{**STOPPED, "step": 400}], 400, "finished", "Finished at step 400 of 400."),
        ([{**STOPPED, "reason": "preempted"}], 300, "stopped", "Stopped at step 300 of 400; the same command goes on from there."),
        ([{**STOPPED, "reason": "UserError"}], 300, "ended with UserError", "Ended with UserError at step 300 of 400."),
    ],
)
def test_report_and_watch_say_one_thing(events: list[Mapping[str, Any]], last: int, watched: str, said: str, tmp_path: Path) -> None:
    """Without the time of the last line, as at a URL. A run of an early version has no events: it has finished at its last step."""
    seen = watch.look(str(make(tmp_path / "run", [train(last)], events, run=Run(train=TrainConfig(steps=400)))))
    assert watch.state(dataclasses.replace(seen, written=0.0), NOW) == watched and verdict.state(seen.history) == said


def test_a_start_after_a_stop_runs(tmp_path: Path) -> None:
    start = {
        "event": "start",
        "step": 300,
        "seconds": 1.0,
        "kind": "resume",
        "reached": 300,
        "command": [],
        "versions": {},
        "device": "cpu",
    }
    start |= {"devices": 1, "processes": 1, "steps": 400, "phases": []}
    seen = watch.look(str(make(tmp_path / "run", [train(100), train(300)], [STOPPED, start])))
    assert watch.state(seen, NOW).startswith("running") and "step 300 of 400 (75%)   about 0:00:50 left" in watch.lines(seen, NOW, 79)


def test_the_rate_is_not_that_across_a_restart() -> None:
    """The clock of the rows begins again with every start."""
    assert watch.rate([row(100, "train", 50.0), row(200, "train", 3.0)]) == 0
    assert watch.rate([row(100, "train", 50.0), row(200, "train", 90.0), row(200, "held_out", 95.0)]) == 2.5


def test_several_runs_are_a_table(run: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", [train(100)], [STOPPED])
    lines = watch.table([watch.look(str(one)) for one in (run, other, tmp_path / "none")], NOW, 100)
    assert [line.split() for line in lines] == [
        ["run", "step", "loss", "held", "out", "left", "state", "tokens/s"],
        ["run", "300/100,000", "6.0000", "8.5000", "13:50:50", "running", "12,346"],
        ["other", "100/100,000", "8.0000", "-", "-", "finished", "12,346"],
        ["none", "-", "-", "-", "-", "no", "numbers", "yet", "-"],
    ]


def test_a_fine_tuning_is_its_seeds(tmp_path: Path) -> None:
    for seed in (0, 1):
        make(tmp_path / "tuned" / f"seed_{seed}", [train(100)])
    assert history.expanded([str(tmp_path / "tuned"), "memory://a/b"]) == [
        *(str(tmp_path / f"tuned/seed_{i}") for i in (0, 1)),
        "memory://a/b",
    ]


def test_a_fine_tuning_at_a_url_is_its_seeds(tmp_path: Path) -> None:
    import fsspec

    for seed in (2, 10):
        make(tmp_path / "tuned" / f"seed_{seed}", [train(100)])
    fsspec.filesystem("memory").put(str(tmp_path / "tuned"), "/watched_seeds/tuned", recursive=True)
    seeds = [f"memory://watched_seeds/tuned/seed_{seed}" for seed in (2, 10)]
    assert history.expanded(["memory://watched_seeds/tuned/"]) == seeds and history.expanded(seeds) == seeds
    assert [watch.look(seed).history.step for seed in seeds] == [100, 100]


def test_a_run_at_a_url(run: Path) -> None:
    import fsspec

    fsspec.filesystem("memory").put(str(run), "/watched", recursive=True)
    seen = watch.look("memory://watched")
    assert (seen.history.step, seen.checkpoint, watch.state(seen, NOW)) == (300, 200, "running or killed")


def test_once_prints_a_picture_and_ends(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["watch", "--workdir", str(run), "--once"]) == 0
    out = capsys.readouterr().out
    assert "step 300 of 100,000" in out and CONTROL not in out
    (tmp_path / "new").mkdir()
    assert main(["watch", "--workdir", str(tmp_path / "new"), "--once"]) == 0
    assert "no numbers yet: waiting" in capsys.readouterr().out
    assert main(["watch", "--workdir", str(tmp_path / "none"), "--once"]) == 2
    assert "no such directory" in capsys.readouterr().err


def test_without_a_terminal_it_says_what_to_do(run: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["watch", "--workdir", str(run)]) == 2
    assert capsys.readouterr() == ("", "jaxenc: jaxenc watch: shows a live picture, and this is not a terminal; add --once\n")


def test_damaged_numbers_are_one_line(run: Path, capsys: pytest.CaptureFixture) -> None:
    (run / "metrics.jsonl").write_text("[1]\n")
    assert main(["watch", "--workdir", str(run), "--once"]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"jaxenc: {run}/metrics.jsonl:1: is not a row of numbers") and err.count("\n") == 1


@pytest.mark.parametrize("content", ['{"step"', '{"step": 4, "split": "train", "seconds": 1.0, "lr": 0.1}\n'])
def test_rows_without_a_curve(run: Path, content: str, capsys: pytest.CaptureFixture) -> None:
    """A first row that is being written, and rows whose numbers have no curve."""
    (run / "metrics.jsonl").write_text(content)
    assert main(["watch", "--workdir", str(run), "--once"]) == 0
    out, err = capsys.readouterr()
    assert "of 100,000" in out and "loss" not in out and not err


def test_it_waits_for_a_run_and_ends_with_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run begins at the second look; at the third the user leaves."""
    looks: list[int] = []

    def pause(seconds: float) -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            make(tmp_path / "run", [train(100)])
        else:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("time.sleep", pause)
    with terminal() as written:
        assert main(["watch", "--workdir", str(tmp_path / "run")]) == 0
        assert sys.stdout.isatty()
    text = written()
    assert text.index("no numbers yet") < text.index("step 100 of 100,000") and "\x1b[?25l" not in text
    assert EXAMPLES[0].startswith("jaxenc watch")


def test_a_sparkline_has_the_shape_of_its_values() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == MARKS
    assert sparkline([float("nan"), 1, float("inf")], 8) == MARKS[0] and sparkline([], 8) == "" and sparkline([1, 2], 0) == ""
    assert sparkline([0, 2, 10, 10], 2) == MARKS[0] + MARKS[-1]  # means 1 and 10
    assert len(sparkline(list(range(1000)), 30)) == 30
    assert sparkline([1e308, 1, -1e308, 2, 1e308, 1e308], 8) == MARKS[0] + MARKS[-1]  # a loss that blew up, whose sums are no numbers


def test_the_name_of_a_run_does_not_control_the_terminal(tmp_path: Path) -> None:
    seen = watch.look(str(make(tmp_path / "a\n\x1b[31m", [train(100)])))
    shown = "".join([*watch.lines(seen, NOW, 200), *watch.table([seen, Seen("b\r")], NOW, 200), *watch.lines(Seen("\x1b[2J"), NOW, 79)])
    assert not {"\n", "\x1b", "\r"} & {*shown} and r"a\n\x1b[31m" in shown
