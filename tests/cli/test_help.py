"""What --help says: it fits a screen, its examples are true, and it comes at once."""

import importlib
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from jaxenc.cli import main as cli_main
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import COMMANDS, CONFIGURED, GROUPS, main
from jaxenc.cli.parser import Parser
from jaxenc.tasks import recipe as tasks

LINES, COLUMNS = 50, 80


def help_of(argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code in (None, 0)
    return capsys.readouterr().out.splitlines()


def test_the_first_help_fits_a_screen_and_lists_every_command_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    lines = help_of(["--help"], monkeypatch, capsys)
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    assert [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in COMMANDS] == listed


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_a_screen_and_has_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    lines = help_of([command, "--help"], monkeypatch, capsys)
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS, "\n".join(lines)
    assert lines[0].startswith(f"usage: jaxenc {command}")
    assert any(line.startswith("example") for line in lines)


def examples() -> list[tuple[str, list[str]]]:
    out = []
    for command in COMMANDS:
        parser = Parser(f"jaxenc {command}")
        importlib.import_module(f"jaxenc.cli.{command.replace('-', '_')}").add_arguments(parser)
        for line in parser.examples:
            words = shlex.split(line)
            out.append((command, words[words.index("jaxenc") + 1 :]))
    return out


@pytest.mark.parametrize("command, words", examples(), ids=lambda value: value if isinstance(value, str) else " ".join(value[:3]))
def test_examples_are_taken_by_the_parser_and_their_fields_by_the_config(
    command: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is of the command whose help shows it. Files and folders that it names do not exist here."""
    assert words[0] == command
    overrides = [word for word in words if word.startswith("--config.")]
    assert not overrides or command in CONFIGURED
    args = cli_main._parser(words).parse_args([word for word in words if word not in overrides])
    config = getattr(args, "config", "") or ""
    if config.startswith("tasks/"):
        written = tasks.from_dict(cli_config.read(config), config)
        assert len(cli_config.parsed(written, overrides, tasks.KINDS)) == len(overrides)
    elif config:
        cli_config.resolve(config, overrides)
    else:
        cli_config.of_evaluation(overrides)


def test_the_first_help_loads_no_jax_and_takes_less_than_a_second() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import sys\nfrom jaxenc.cli.main import main\ntry: main(['--help'])\nfinally: assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1


def test_every_command_names_the_nearest_command(fails: Callable[..., str]) -> None:
    for command in COMMANDS:
        for wrong in (command[:-1], command[:1] + command[2] + command[1] + command[3:], command.upper()):
            assert wrong in COMMANDS or command in fails(wrong), wrong
