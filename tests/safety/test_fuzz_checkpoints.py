"""Damaged files of a run and of a checkpoint: one line, in bounded time and memory."""

import json
from pathlib import Path

import pytest
from hypothesis import given

from jaxenc.checkpoint import restore, verify
from jaxenc.config import to_dict
from jaxenc.errors import UserError
from jaxenc.training import record
from jaxenc.training.run import Run, from_dict
from tests.safety.damage import Edits, altered, bounded, byte_edits, damaged, dumped, folder_of, fuzzed, json_edits


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "7"
    folder.mkdir()
    folder_of(folder / "state", {"array": bytes(100), "other": bytes(7)})
    folder_of(folder, {"config.json": b"{}"})
    verify.write_checksums(folder, 7)
    folder_of(folder, {"sound": (folder / verify.CHECKSUMS).read_bytes()})
    return folder


def check_step(step: Path, content: bytes) -> None:
    """It is whole, or one line says why it is not; nothing outside of it is looked at."""
    (step / verify.CHECKSUMS).write_bytes(content)
    with bounded():
        problems = verify.verify(step)
        assert all(problem.isprintable() and len(problem) < 6000 and "passwd has" not in problem for problem in problems), problems
        assert verify.steps(step.parent) in ([], [7])


@fuzzed(700)
@given(edits=json_edits())
def test_checksums(step: Path, edits: Edits) -> None:
    check_step(step, dumped(altered(json.loads((step / "sound").read_bytes()), edits)))


@fuzzed(500)
@given(edits=byte_edits())
def test_checksums_byte_by_byte(step: Path, edits: Edits) -> None:
    check_step(step, damaged((step / "sound").read_bytes(), edits))


SOUND = json.loads(json.dumps(to_dict(Run())))


@fuzzed(800)
@given(edits=json_edits())
def test_configs_of_runs(edits: Edits) -> None:
    with bounded():
        assert from_dict(altered(SOUND, edits)).plan


@fuzzed(300)
@given(edits=byte_edits())
def test_json_of_checkpoints(step: Path, edits: Edits) -> None:
    (step / "config.json").write_bytes(damaged(dumped(SOUND), edits))
    with bounded():
        data = restore.read_json(step, "config.json")
        assert isinstance(from_dict(data), Run)


ROWS = b"".join(dumped({"step": step, "split": "train", "loss": 1.5}) + b"\n" for step in range(1, 5))


@fuzzed(400)
@given(edits=byte_edits())
def test_logs_of_runs(tmp_path_factory: pytest.TempPathFactory, edits: Edits) -> None:
    folder = folder_of(
        tmp_path_factory.getbasetemp() / "logs",
        {record.METRICS: damaged(ROWS, edits), record.EXAMPLES: damaged(b"1\t0:1\n2\t0:2\n", edits)},
    )
    with bounded():
        record.read(folder / record.METRICS)
    with bounded():
        record.cut(folder, 3)


@pytest.mark.parametrize("kind", [[], {}, None, 3])
def test_a_kind_that_is_no_name(kind: object) -> None:
    with pytest.raises(UserError, match=r"config\.objective\.kind is"):
        from_dict({"objective": {"kind": kind}})


@pytest.mark.parametrize(
    "line", [b"{\n", b'{"step": "x", "split": "train"}\n', b'{"step": 1e999, "split": ""}\n', b"\xff\n", b"[" * 100_000 + b"\n"]
)
def test_a_log_with_a_line_that_is_none(tmp_path: Path, line: bytes) -> None:
    """It is named and stays as it is."""
    (tmp_path / record.METRICS).write_bytes(ROWS + line)
    with pytest.raises(UserError, match=r"metrics\.jsonl:5: is not a row of numbers"):
        record.cut(tmp_path, 2)
    assert (tmp_path / record.METRICS).read_bytes() == ROWS + line


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "a//b", "x" * 300])
def test_checksums_of_files_elsewhere(tmp_path: Path, name: str) -> None:
    entry = {"size": 0, "sha256": ""}
    folder_of(tmp_path / "3", {verify.CHECKSUMS: dumped({"format": 1, "step": 3, "files": {name: entry}})})
    assert verify.verify(tmp_path / "3") == [f"{verify.CHECKSUMS} cannot be read"]
