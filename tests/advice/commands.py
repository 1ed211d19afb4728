"""Follows advice about a command: what an error says of an option becomes another command line, and a command it prints is run."""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from jaxenc.cli import main
from jaxenc.errors import UserError
from tests.advice.following import listed
from tests.selection import FULL

Argv = tuple[str, ...]
Rule = Callable[[re.Match[str], UserError, Argv], list[Argv]]


def run(argv: Argv) -> None:
    """Runs a command in this process and removes what it wrote. Raises what it raises; `--help` ends it with the code 0."""
    out = Path(argv[argv.index("--out") + 1]) if "--out" in argv else None
    was_there = out is not None and out.exists()
    try:
        main._run(list(argv))
    except SystemExit as end:
        assert not end.code, argv
    if out is not None and not was_there:
        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)


def without(argv: Argv, option: str) -> Argv:
    """The command line without an option, an override or a plain argument, and without the values of the option."""
    if option not in argv:  # --option=value
        return tuple(item for item in argv if item.partition("=")[0] != option)
    start = argv.index(option)
    takes = option.startswith("--") and not option.startswith("--config.")
    end = next((i for i in range(start + 1, len(argv)) if argv[i].startswith("--")), len(argv)) if takes else start + 1
    return argv[:start] + argv[end:]


def with_value(argv: Argv, option: str, *values: str) -> Argv:
    """The command line with other values of an option."""
    return (*without(argv, option), option, *map(str, values))


def _option(error: UserError) -> str:
    """The option, or plain argument, that an error is about."""
    return next((item for item in error.where.split() if item.startswith("--")), error.where).rstrip(":").partition("=")[0]


def _values(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    return [with_value(argv, _option(error), value) for value in listed(match[1])]


def _left_out(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    return [without(argv, error.where if error.where in argv else _option(error))]


def _meant(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    """Each of the names that were meant, in the place of the wrong one."""
    wrong = error.where.split()[-1]
    return [
        tuple(item.replace(wrong, str(name), 1) if item.partition("=")[0] == wrong else item for item in argv) for name in listed(match[1])
    ]


def _another(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    option = match[1]
    place = argv.index(option) + 1
    return [(*argv[:place], "another" + Path(argv[place]).suffix, *argv[place + 1 :])]


def _another_or_deleted(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    other = _another(match, error, argv)
    path = Path(argv[argv.index(match[1]) + 1])
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return [*other, argv]


def _printed(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    """A command in backticks, as it is printed."""
    return [tuple(shlex.split(match[1]))]


# What a fix says -> command lines that follow it; the first that fits.
RULES: dict[str, Rule] = {
    r"^did you mean ([^?]+)\?": _meant,
    r"^use (\d+) or more$": _values,
    r"^use (-?[\d,.]+) to (-?[\d,.]*\d)": lambda match, error, argv: [
        with_value(argv, _option(error), n.replace(",", "")) for n in match.groups()[: 2 if FULL or len(match[2]) < 4 else 1]
    ],
    r"^use (\d+) or more and less than 1$": lambda match, error, argv: [with_value(argv, _option(error), n) for n in ("0", "0.9")],
    r"^use (\d+) at most$": _values,
    r"^use more: .* (\d+)": lambda match, error, argv: [with_value(argv, _option(error), int(match[1]) + 400)],
    r"^use --type characters with --pretokenized, or leave that out$": lambda match, error, argv: [
        with_value(argv, "--type", "characters"),
        without(argv, "--pretokenized"),
    ],
    r"^use (--\S+) (\w+)$": lambda match, error, argv: [with_value(argv, match[1], match[2])],
    r"^use ([\w ,]+)$": _values,
    r"^use (.+) or mix:FILE$": _values,
    r"^choose another (--[\w-]+) or delete it$": _another_or_deleted,
    r"choose another (--[\w-]+)$": _another,
    r"^add --runner beam, or leave it out$": _left_out,
    r"leave it out$": _left_out,
    r"^leave it out": _left_out,
    r"^`jaxenc (.+ --help)` shows what": _printed,
    r"; `(jaxenc .+ --help)` shows what it takes$": lambda match, error, argv: [
        without(argv, error.where),
        tuple(shlex.split(match[1])[1:]),
    ],
    r"`(jaxenc(?: [\w-]+)* --help)` lists them": lambda match, error, argv: [tuple(shlex.split(match[1])[1:])],
}


def advised(error: UserError, argv: Argv, more: Mapping[str, Rule] = MappingProxyType({})) -> list[Argv]:
    """The command lines that an error's advice names."""
    for pattern, rule in {**more, **RULES}.items():
        if match := re.search(pattern, error.fix):
            return rule(match, error, argv)
    raise AssertionError(f"{error.made}: no rule follows the advice of {error}")
