"""Damaged files of a run directory, as the commands read them: config.json, manifest.json and metrics.jsonl."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc.config import to_dict
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.reports import picture, report
from jaxenc.training import events, prepare, record, refusals, resume
from jaxenc.training.job import Job
from jaxenc.training.run import Run, from_dict
from tests.safety.damage import ODD, Edits, altered, bounded, byte_edits, damaged, dumped, folder_of, fuzzed, json_edits
from tests.tiny import MODEL
from tests.training.conftest import make_data


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def job(place: Path) -> Job:
    """A run that could begin."""
    data = DataConfig(path=str(make_data(place / "made", 1)), length=MODEL.positions)
    return prepare.prepare(Run(model=MODEL, data=data), place)


@fuzzed(300)
@given(which=st.sampled_from([prepare.CONFIG, prepare.MANIFEST]), edits=json_edits())
def test_files_of_another_run(place: Path, job: Job, which: str, edits: Edits) -> None:
    """What a work directory and a checkpoint say of their run is compared with this one."""
    files = {prepare.CONFIG: job.files[prepare.CONFIG], prepare.MANIFEST: job.files[prepare.MANIFEST]}
    folder = folder_of(place / "7", {**files, which: dumped(altered(json.loads(files[which]), edits))})
    for refuse in (resume.refuse_other_run, resume.refuse_other_state, refusals.refuse_other_tokenizer):
        with bounded():
            refuse(job, folder)


@fuzzed(300)
@given(edits=json_edits())
def test_configs_that_are_opened(place: Path, job: Job, edits: Edits) -> None:
    """As far as `evaluate` and `report` go with the config.json of a run: to its data."""
    data = altered(json.loads(job.files[prepare.CONFIG]), edits)
    with bounded():
        prepare.prepare(from_dict(data), place)


@pytest.mark.parametrize("path", [odd for odd in ODD if isinstance(odd, str)])
def test_paths_of_data(place: Path, job: Job, path: str) -> None:
    """A path of any letters is one that is not there."""
    with bounded(), pytest.raises(UserError):
        prepare.prepare(dataclasses.replace(job.run, data=dataclasses.replace(job.run.data, path=path)), place)


def test_a_manifest_as_deep_as_json_may_be(place: Path, job: Job) -> None:
    deep = json.loads('{"a":' * 900 + "1" + "}" * 900)
    for name in ("fingerprint", "tokenizer"):
        manifest = {**json.loads(job.files[prepare.MANIFEST]), name: deep}
        folder = folder_of(place / "7", {prepare.CONFIG: job.files[prepare.CONFIG], prepare.MANIFEST: dumped(manifest)})
        with bounded(), pytest.raises(UserError):
            resume.refuse_other_run(job, folder)


ROW = {"step": 8, "split": "held_out", "mlm_loss": 2.5, "forward_loss": 1.5, "mlm_accuracy": 0.5, "mlm_predictions": 80, "seconds": 1.5}


def reported(folder: Path, rows: bytes) -> None:
    folder_of(folder, {record.METRICS: rows, prepare.CONFIG: dumped(to_dict(Run()))})
    report.report(folder, with_baselines=False)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture takes as long as a hundred tables."""
    monkeypatch.setattr(picture, "picture", lambda panels: b"")


@fuzzed(300)
@given(edits=json_edits())
def test_rows_of_numbers(place: Path, undrawn: None, edits: Edits) -> None:
    with bounded():
        reported(place / "rows", dumped({**ROW, "split": "train"}) + b"\n" + dumped(altered(ROW, edits)) + b"\n")


@fuzzed(300)
@given(edits=byte_edits())
def test_rows_byte_by_byte(place: Path, undrawn: None, edits: Edits) -> None:
    with bounded():
        reported(place / "rows", damaged(3 * (dumped(ROW) + b"\n"), edits))


START = {
    **{"time": 1.7e9, "event": "start", "step": 0, "seconds": 2.0, "kind": "fresh", "reached": 0, "command": ["jaxenc", "--config", "x"]},
    **{"versions": {"jax": "1"}, "device": "cpu", "devices": 1, "processes": 1, "steps": 9},
    "phases": [{"start": 0, "end": 9, "batch": 2, "length": 8, "flops": 1e6}],
}
STEPS = {"time": 1.7e9 + 9, "event": "steps", "step": 8, "seconds": 6.5, "after": 0}


@fuzzed(300)
@given(row=st.sampled_from([START, STEPS]), edits=json_edits())
def test_events(place: Path, undrawn: None, row: dict, edits: Edits) -> None:
    with bounded():
        rows = dumped(START) + b"\n" + dumped(altered(row, edits)) + b"\n"
        folder_of(place / "events", {record.METRICS: dumped(ROW) + b"\n", prepare.CONFIG: dumped(to_dict(Run())), events.EVENTS: rows})
        report.report(place / "events", with_baselines=False)


NUMBERS = ("NaN", "Infinity", "-Infinity", "3e38", "-3e38", "1e-320", "0", "-1", str((1 << 63) - 1))


def test_numbers_at_their_edges_are_drawn(place: Path) -> None:
    rows = [dumped(ROW).replace(b"2.5", number.encode()).replace(b"1.5", number.encode()) for number in NUMBERS]
    reported(place / "drawn", b"\n".join(rows) + b"\n")
    assert (place / "drawn" / "report.png").is_file()


@pytest.mark.parametrize(
    "change",
    [
        {"mlm_loss": "2.5"},
        {"mlm_loss": [1]},
        {"mlm_loss": True},
        {"mlm_loss": 10**30},
        {"$x_loss": 1.0},
        {"\x1b[2J_loss": 1.0},
        {"step": 1.5},
    ],
)
def test_what_is_no_row_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / record.METRICS).write_bytes(dumped(ROW) + b"\n" + dumped(ROW | change) + b"\n")
    with pytest.raises(UserError, match=r"metrics\.jsonl:2: is not a row of numbers"):
        record.read(tmp_path / record.METRICS)
