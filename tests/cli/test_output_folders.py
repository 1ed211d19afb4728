"""R33: no command writes over what it did not make, and none takes an empty name."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.cli import main as cli_main
from jaxenc.cli.main import COMMANDS
from tests.cli.test_pretrain import NANO
from tests.tasks.tiny_task import make_model

pytestmark = pytest.mark.usefixtures("one_device")

# Every command that writes to a place that the user names: its arguments but for that place.
WRITERS = {
    "pretrain": ("--config", "bert/tiny", "--config.data.path={data}", *NANO, "--workdir"),
    "finetune": ("--config", "tasks/text", "--config.data.train={data}/../text.txt", "--init-from", "{model}", "--workdir"),
    "probe": ("--config", "tasks/text", "--config.data.train={data}/../text.txt", "--model", "{model}", "--workdir"),
    "demo": ("--workdir",),
    "tokenizer": ("--input", "{data}/../text.txt", "--out"),
    "data": ("--input", "{data}/../text.txt", "--tokenizer", "{data}/tokenizer", "--out"),
    "convert": ("--from", "hf:{data}", "--to"),
    "export": ("--model", "{data}", "--out"),
    "resize-vocab": ("--model", "{data}", "--tokens", "zz", "--out"),
    "embed": ("--model", "{data}", "--input", "{data}/../text.txt", "--out"),
    "compile": ("--config", "bert/tiny", "--topology", "h100:8", *NANO, "--out"),
    "report": ("--workdir",),
    "evaluate": ("--workdir", "{data}", "--predictions"),
}
# Those that write a file and not a folder; the ending says which.
TO_FILES = ("compile", "embed", "evaluate")
READERS = {"fill-mask", "complete", "neighbours", "inspect", "doctor", "bench", "watch"}
ELSEWHERE = {"predict"}  # tests/cli/test_predict.py has a fine-tuned model


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def test_r33_every_command_is_known_to_write_or_not() -> None:
    assert set(WRITERS) | READERS | ELSEWHERE == set(COMMANDS)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make_model(folder := tmp_path_factory.mktemp("model") / "run")
    return folder


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("what", ["a data folder", "a folder with thesis.tex"])
def test_r33_no_command_writes_over_a_folder_of_another_kind(
    command: str, what: str, data: Path, model: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    """Which is named; nothing in it, nor beside it, changes. `report` asks for a run that has trained."""
    place = tmp_path / "mine"
    place.mkdir()
    (place / "thesis.tex").write_text("mine")
    if what == "a data folder":
        os.rename(place / "thesis.tex", place / "train-00000.tokens")
        (place / "manifest.json").write_text("mine")
    before = snapshot(tmp_path)
    given = [item.format(data=data, model=model) for item in WRITERS[command]]
    said = fails(command, *given, place.rename(tmp_path / "mine.npz") if command in TO_FILES else place)
    if command in TO_FILES:
        (tmp_path / "mine.npz").rename(place)
    named = {"report": "metrics.jsonl: no such file", "data": "mine"}.get(command, what)
    assert named in said and "mine" in said
    assert snapshot(tmp_path) == before


def options() -> list[tuple[str, str]]:
    """(command, option) of everything that takes a value."""
    out = []
    for command in COMMANDS:
        parser = cli_main._parser([command])
        commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        out += [(command, action) for action in commands.choices[command]._actions if action.option_strings and action.nargs != 0]
    return [(command, action.option_strings[0]) for command, action in out]


def test_r33_an_empty_value_is_refused_by_every_option_of_every_command(fails: Callable[..., str]) -> None:
    found = options()
    assert {("pretrain", "--continue-from"), ("evaluate", "--data"), ("convert", "--tokenizer"), ("embed", "--out")} < set(found)
    for command, option in found:
        for given in ([option, ""], [f"{option}="]):
            assert f"jaxenc: {option}: empty; is a shell variable unset?" in fails(command, *given)
    assert "jaxenc: --input: empty" in fails("data", "--input", "a.txt", "", "--tokenizer", "x", "--out", "y")


def test_r33_a_run_that_was_killed_between_its_first_two_files_goes_on(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ["pretrain", *(item.format(data=data) for item in WRITERS["pretrain"]), str(run)]
    assert cli_main.main(command) == 0
    for path in ("manifest.json", "metrics.jsonl"):
        (run / path).unlink()
    (run / "checkpoints" / "1").rename(tmp_path / "away")
    (run / "checkpoints").rmdir()
    assert cli_main.main(command) == 0
    assert (run / "checkpoints" / "1" / "manifest.json").is_file()
