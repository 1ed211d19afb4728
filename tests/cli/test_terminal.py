"""Long commands on a terminal and in a file: bars there, lines here. A nano BERT that is traced, and logged to Weights & Biases."""

import gzip
import importlib.util
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jaxenc.cli.main import main
from jaxenc.training import compiling, profile
from tests.cli.test_pretrain import TINY
from tests.terminal import CONTROL, kept, terminal
from tests.training.conftest import make_data


class Ran(NamedTuple):
    """A run of 4 steps on a terminal that was continued to 6 with stderr in a file. expected: what was known of compilations then."""

    workdir: Path
    data: Path
    terminal: str
    file: str


def command(data: Path, workdir: Path, steps: int, *more: str) -> list[str]:
    fixed = ("--config.train.batch=8", "--config.optim.warmup=0", "--config.optim.schedule=constant", "--config.checkpoint.every=2")
    small = (*TINY, *fixed, "--config.eval.rows=8", "--config.log.wandb=offline")
    run = ["pretrain", "--config", "bert/tiny", f"--config.data.path={data}", "--workdir", str(workdir)]
    return [*run, *small, f"--config.train.steps={steps}", *more]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, one_device: None) -> Ran:
    folder = tmp_path_factory.mktemp("terminal")
    data = make_data(folder / "made", 1)
    with pytest.MonkeyPatch.context() as patch, terminal() as written:
        patch.setenv("JAXENC_CACHE", str(folder / "cache"))
        patch.setattr(compiling, "SHORT", 0.0)
        assert main(command(data, folder / "group" / "run", 4, "--profile-steps", "3:4")) == 0
    with (folder / "stderr").open("w") as file, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXENC_CACHE", str(folder / "cache"))
        patch.setattr("sys.stderr", file)
        assert main(command(data, folder / "group" / "run", 6)) == 0
    return Ran(folder / "group" / "run", data, written(), (folder / "stderr").read_text())


def test_r26_every_long_part_of_a_run_shows_itself(ran: Ran) -> None:
    for what in ("initialising the model", "training", "compiling the step: 8 rows of 24 tokens", "evaluation", "of 4 steps"):
        assert what in ran.terminal, what


def test_r26_a_file_gets_the_lines_and_nothing_else(ran: Ran) -> None:
    assert CONTROL not in ran.file and "\r" not in ran.file
    starts = [line.split()[0] for line in ran.file.splitlines()]
    assert starts[1:] == ["warning:", "compiling", "step", "step"] and "few tokens are held out" in ran.file, ran.file


def test_r26_what_stays_on_the_terminal_are_the_lines_of_the_file(ran: Ran) -> None:
    lines = kept(ran.terminal)
    assert [line.split()[0] for line in lines[1:]] == ["warning:", "compiling", *["step"] * 3, "profile:", "profile:"], lines
    assert all("━" not in line and "─" not in line for line in lines)


def test_the_wait_for_a_compilation_is_known_the_next_time(ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine, whatever the work directory."""
    monkeypatch.setenv("JAXENC_CACHE", str(ran.data.parents[1] / "cache"))
    known = compiling.seconds()
    assert known and all(value >= 0 for value in known.values())
    monkeypatch.setattr(compiling, "seconds", lambda: dict.fromkeys(known, 65.0))
    with terminal() as written:
        assert main(command(ran.data, tmp_path / "other", 1)) == 0
    assert "took 0:01:05 last time" in written()


def test_a_trace_names_its_steps_and_no_other(ran: Ran) -> None:
    (trace,) = (ran.workdir / profile.FOLDER).glob("plugins/profile/*/perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    steps = {int(event["args"]["step_num"]) for event in events if event.get("name") == profile.STEP}
    assert steps == {3, 4}
    assert list(trace.parent.glob("*.xplane.pb")), "what TensorBoard opens"
    assert str(trace) in ran.terminal.replace("\r\n", "") and f"--logdir {ran.workdir / profile.FOLDER}" in ran.terminal


def logged_records(content: bytes) -> Iterator[bytes]:
    """The records of a file in the log format of LevelDB (doc/log_format.md of google/leveldb), after the 7 bytes that W&B writes first."""
    at, whole = 7, b""
    while at + 7 <= len(content):
        if (rest := -at % (1 << 15)) and rest < 7:  # no header begins in the last 6 bytes of a block
            at += rest
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield whole
            whole = b""


def test_a_resumed_run_is_one_run_of_weights_and_biases(ran: Ran) -> None:
    """Its files, as wandb reads them: one id, a project named by the folder, the steps of both starts, and the settings."""
    from wandb.proto import wandb_internal_pb2

    rows, ids, projects, config = [], set(), set(), {}
    for path in sorted((ran.workdir / "wandb").glob("offline-run-*/run-*.wandb")):
        for data in logged_records(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                ids.add(record.run.run_id), projects.add(record.run.project)
                config |= {item.key: item.value_json for item in record.run.config.update}
            if record.HasField("history"):
                rows.append({(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item})
    assert ids == {json.loads((ran.workdir / "wandb.json").read_text())["id"]} and projects == {"group"}
    assert "optim" in config and json.loads(config["train"])["batch"] == 8
    logged = [(row["step"], name) for row in rows for name in row if name in ("train/loss", "held_out/mlm_loss")]
    assert logged == [(1, "train/loss"), (4, "train/loss"), (4, "held_out/mlm_loss"), (6, "train/loss"), (6, "held_out/mlm_loss")]
    lines = [json.loads(line) for line in (ran.workdir / "metrics.jsonl").read_text().splitlines()]
    assert [row["train/loss"] for row in rows if "train/loss" in row] == [line["loss"] for line in lines if line["split"] == "train"]


def test_tensorboard_shows_the_settings(ran: Ran) -> None:
    (first, *_) = sorted((ran.workdir / "tensorboard").iterdir())
    assert b"    optim.schedule = 'constant'" in first.read_bytes()


def test_weights_and_biases_that_is_not_installed_is_one_line(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "wandb" else find(name, *more))
    said = fails(*command(ran.data, tmp_path / "run", 1))
    assert "log.wandb=offline: needs wandb, which is not installed; install it with `pip install 'jaxenc[wandb]'`" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "steps, words",
    [
        ("1:3", "--profile-steps 1:3: the run takes steps 1 to 4, and compiles before the first; name steps of 2 to 4"),
        ("3:5", "name steps of 2 to 4"),
        ("3", "--profile-steps 3: not two steps; write the first and the last step, as in 10:14"),
        ("a:b", "not two steps"),
        ("3:2", "--profile-steps 3:2: not 1 to 100 steps; write"),
        ("2:102", "not 1 to 100 steps"),
    ],
)
def test_wrong_steps_to_trace_are_refused(steps: str, words: str, ran: Ran, tmp_path: Path, fails: Callable[..., str]) -> None:
    assert words in fails(*command(ran.data, tmp_path / "run", 4, "--profile-steps", steps))
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_steps_to_trace_are_counted_from_where_a_run_resumes(ran: Ran, fails: Callable[..., str]) -> None:
    said = fails(*command(ran.data, ran.workdir, 9, "--profile-steps", "7:8"))
    assert "the run takes steps 7 to 9, and compiles before the first; name steps of 8 to 9" in said


@pytest.mark.parametrize(
    "words, shown",
    [
        ("tokenizer --input {text} --vocab-size 150 --out {new}", "tokenizer"),
        ("data --input {text} --tokenizer {made}/tokenizer --out {new}", "data"),
        ("evaluate --workdir {run}", "evaluation"),
        ("embed --model {run} --input {lines} --raw --out {new}.npz --layers top", "embed"),
        ("export --model {run} --out {new}", "writing "),
    ],
)
def test_r26_other_long_commands_show_themselves(words: str, shown: str, ran: Ran, tmp_path: Path) -> None:
    """And leave no bar behind. Those that end within a second draw nothing, which the fixture switches off."""
    lines = tmp_path / "lines.txt"
    lines.write_text("ba de\n" * 3)
    made = ran.data.parent
    places = {"text": made / "text.txt", "made": made, "run": ran.workdir, "lines": lines, "new": tmp_path / "new"}
    with terminal() as written:
        assert main(words.format(**places).split()) == 0
    assert shown in written() and CONTROL in written()
    assert not any("━" in line or "─" in line for line in kept(written()))
