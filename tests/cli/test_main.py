"""Where errors become a line and an exit code."""

import importlib
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import pytest

from jaxenc.cli import main as cli_main
from jaxenc.cli.main import COMMANDS, main
from jaxenc.cli.parser import Parser
from jaxenc.errors import UserError


@pytest.mark.parametrize(
    "argv, words",
    [
        ([], "required: COMMAND; `jaxenc --help`"),
        (["pretrian"], "pretrian: no such command; did you mean pretrain? `jaxenc --help` lists them"),
        (["Fill_Mask", "--k", "3"], "did you mean fill-mask?"),
        (["xyzzy"], "xyzzy: no such command; it takes demo, tokenizer, data, pretrain, "),
        (["pretrain", "--config", "bert/tiny"], "required: --workdir; `jaxenc pretrain --help`"),
        (["report", "--no-baseline"], "`jaxenc report` has no such option; did you mean --no-baselines? `jaxenc report --help`"),
        (["fill-mask", "--kk", "3"], "--kk: `jaxenc fill-mask` has no such option; did you mean --k? `jaxenc fill-mask --help`"),
        (["fill-mask", "-k=3"], "-k: `jaxenc fill-mask` has no such option; did you mean --k?"),
        (["fill-mask", "--modle=x", "--text", "y"], "--modle: `jaxenc fill-mask` has no such option; did you mean --model?"),
        (["evaluate", "--model", "x"], "--model: `jaxenc evaluate` has no such option; it takes --workdir, --step, --seed, --data, "),
        (["complete", "--length", "3"], "--length: `jaxenc complete` has no such option; it takes --model, --text, "),
        (["tokenizer", "--vocab_size", "3"], "did you mean --vocab-size?"),
        (["pretrain", "--steps=3"], "--steps: `jaxenc pretrain` has no such option; "),
        (["pretrain", "--steps=3"], "; a field of the config is --config.FIELD=VALUE"),
        (["bench", "data", "folder"], "folder: `jaxenc bench` does not take it; `jaxenc bench --help`"),
        (["report", "--workd", "x"], "--workd: `jaxenc report` has no such option; did you mean --workdir?"),
        (["report", "--workdir", "x", "--config.train.steps=3"], "--config.train.steps=3: `jaxenc report` takes no config; leave it out"),
    ],
)
def test_r30_a_mistake_in_the_arguments_is_one_line(argv: list[str], words: str, fails: Callable[..., str]) -> None:
    """Of the command that was asked for: its nearest option and its help. An unknown option comes before a missing one."""
    assert words in fails(*argv)


@pytest.mark.parametrize("command", COMMANDS)
def test_r30_every_option_is_found_without_its_last_letter_or_with_two_letters_swapped(command: str, fails: Callable[..., str]) -> None:
    parser = Parser(f"jaxenc {command}")
    importlib.import_module(f"jaxenc.cli.{command.replace('-', '_')}").add_arguments(parser)
    names = {name for action in parser._actions for name in action.option_strings if len(name) > 5} - {"--help"}
    for name in names:
        for wrong in (name[:-1], name[:3] + name[4] + name[3] + name[5:]):
            said = fails(command, wrong, "x") if wrong not in names else name
            assert name in said.partition("--help")[0], (name, wrong)


def test_r30_a_value_is_not_taken_for_an_option(fails: Callable[..., str]) -> None:
    """A negative number, and text that begins with a dash and holds a blank."""
    assert "no such option" not in fails("neighbours", "--model", "x", "--input", "gone", "--word", "w", "--layer", "-1")
    assert "no such option" not in fails("fill-mask", "--model", "gone", "--text", "--a [MASK]")


def test_a_field_is_not_set_with_a_blank(fails: Callable[..., str]) -> None:
    said = fails("pretrain", "--config", "bert/tiny", "--config.train.steps", "10", "--workdir", "runs/x")
    assert said == "jaxenc: --config.train.steps: a field is set with =; write --config.train.steps=10\n"


def test_r40_python_dash_m_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "jaxenc", "pretrian"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("jaxenc: pretrian: no such command; did you mean pretrain?")


@pytest.mark.parametrize("argv", [["inspect", "--config", ""], ["inspect", "--config="], ["data", "--input", ""]])
def test_r40_an_empty_value_is_one_line(argv: list[str], fails: Callable[..., str]) -> None:
    assert fails(*argv) == f"jaxenc: {argv[1].rstrip('=')}: empty; is a shell variable unset? Give a value or leave it out\n"


def test_a_file_in_the_place_of_a_folder_is_one_line(data: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        said = fails("pretrain", "--config", "bert/tiny", f"--config.data.path={data}", "--workdir", place)
        assert f"{tmp_path / 'file'}: " in said and "choose another --workdir" in said
    assert (tmp_path / "file").read_text() == "mine"


def test_an_interrupt_is_one_line(capsys: pytest.CaptureFixture) -> None:
    """SIGTERM unwinds as Ctrl-C does, with the code that asks to be run again, and the handler of before is put back."""
    before = signal.getsignal(signal.SIGTERM)
    for number, code in ((signal.SIGINT, 1), (signal.SIGTERM, 75)):
        with mock.patch.object(cli_main, "_run", lambda argv, number=number: signal.raise_signal(number)):
            assert main(["report", "--workdir", "x"]) == code
        assert capsys.readouterr().err.startswith("jaxenc: interrupted")
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "jaxenc.cli.main", "inspect", "--config", "bert/base", "--parameters", "--no-compile"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_what_a_file_says_cannot_write_on_the_terminal(fails: Callable[..., str]) -> None:
    with mock.patch.object(cli_main, "_run", side_effect=UserError("x.safetensors: the tensor a\nb\x1b[2J is damaged")):
        assert fails("report") == "jaxenc: x.safetensors: the tensor a\\nb\\x1b[2J is damaged\n"


def test_text_that_the_terminal_cannot_show_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    with mock.patch.object(cli_main, "_run", lambda argv: print("thé ह") or 0):
        assert main(["complete"]) == 0
    assert written.getvalue() == b"th\xe9 \\u0939\n"


def test_an_array_that_does_not_fit_is_one_line(fails: Callable[..., str]) -> None:
    """What jax itself says of it; another error of jax's keeps its traceback."""
    with mock.patch.object(cli_main, "_run", lambda argv: jax.jit(lambda: jnp.zeros((1 << 25, 1 << 25)))()):
        assert "the device does not have enough memory (Out of memory allocating 4503599627370496 bytes); lower" in fails("report")
    with mock.patch.object(cli_main, "_run", side_effect=RuntimeError("INTERNAL")), pytest.raises(RuntimeError, match="INTERNAL"):
        main(["report"])


@pytest.mark.parametrize("command", ["finetune", "predict", "probe"])
def test_the_help_fits_a_screen_and_its_examples_are_accepted(
    command: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 lines of 80 columns. An example is a whole command line with options that the command has."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 32 and max(map(len, lines)) <= 80
    joined = "\n".join(lines).partition("\nexample")[2].replace("\\\n", " ").splitlines()
    examples = [line[line.index("jaxenc ") :] for line in joined if line.startswith("  ")]
    assert examples
    parser = Parser(f"jaxenc {command}")
    importlib.import_module(f"jaxenc.cli.{command}").add_arguments(parser)
    for example in examples:
        program, named, *argv = shlex.split(example)
        assert (program, named) == ("jaxenc", command)
        parser.parse_args([item for item in argv if not item.startswith("--config.")])
