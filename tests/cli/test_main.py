"""Where errors become a line and an exit code."""

import io
import os
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
from jaxenc.cli.main import main
from jaxenc.errors import UserError


@pytest.mark.parametrize(
    "argv, words",
    [
        ([], "required: COMMAND: `jaxenc --help`"),
        (["pretrian"], "invalid choice: 'pretrian'"),
        (["pretrain", "--config", "bert/tiny"], "required: --workdir: `jaxenc pretrain --help`"),
        (["report", "--workdir", "x", "--stepz", "3"], "unrecognized arguments: --stepz 3: `jaxenc report --help`"),
        (["bench", "data", "folder"], "unrecognized arguments: folder: `jaxenc bench --help`"),
        (["report", "--workd", "x"], "required: --workdir"),
        (["report", "--workdir", "x", "--config.train.steps=3"], "`jaxenc report` takes no config"),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line(argv: list[str], words: str, fails: Callable[..., str]) -> None:
    assert words in fails(*argv)


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
    command = [sys.executable, "-m", "jaxenc.cli.main", "inspect", "--config", "bert/base", "--parameters"]
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
        assert "the device does not have enough memory (Out of memory allocating 4503599627370496 bytes): lower" in fails("report")
    with mock.patch.object(cli_main, "_run", side_effect=RuntimeError("INTERNAL")), pytest.raises(RuntimeError, match="INTERNAL"):
        main(["report"])
