"""Follows advice about the files of a folder: what an error says of a field or a line becomes an edit of that file."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jaxenc.errors import UserError
from tests.advice.following import listed

# Changes one folder.
Edit = Callable[[Path], None]
Rule = Callable[[re.Match[str], UserError], list[Edit]]
GONE = object()


def put(name: str, field: str, value: Any) -> Edit:
    """Sets a field of a JSON file, made if it is not there; field: its keys, parted by blanks; value: GONE removes it."""

    def edit(folder: Path) -> None:
        path = folder / name
        data = json.loads(path.read_text()) if path.is_file() else {}
        *keys, last = [int(key) if key.isdigit() and "." not in key else key for key in field.split()]
        inner = data
        for key in keys:
            inner = inner[key] if isinstance(inner, list) else inner.setdefault(str(key), {})
        last = last if isinstance(inner, list) else str(last)
        if value is GONE:
            del inner[last]
        else:
            inner[last] = value
        path.write_text(json.dumps(data))

    return edit


def rewrite(name: str, change: Callable[[bytes], bytes]) -> Edit:
    """Changes the bytes of a file, b'' if it is not there."""

    def edit(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes() if path.is_file() else b""))

    return edit


def line(name: str, number: int, text: str | None) -> Edit:
    """Puts another line, or none, in the place of a line of a file; numbers start at 1."""

    def change(content: bytes) -> bytes:
        lines = content.decode().split("\n")
        lines[number - 1 : number] = [] if text is None else [text]
        return "\n".join(lines).encode()

    return rewrite(name, change)


def removed(name: str) -> Edit:
    return lambda folder: (folder / name).unlink()


def together(*several: Edit) -> Edit:
    def edit(folder: Path) -> None:
        for one in several:
            one(folder)

    return edit


def in_copies(base: Path, scratch: Path, action: Callable[[Path], object]) -> Callable[[tuple[Edit, ...]], object]:
    """The action on a new copy of `base`, changed by the edits."""
    made: list[Path] = []

    def act(edits: tuple[Edit, ...]) -> object:
        copy = scratch / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        for edit in edits:
            edit(copy)
        made.append(copy)
        return action(copy)

    return act


def _file(error: UserError) -> str:
    """The name of the file that an error is about, without a line."""
    return Path(re.sub(r":\d+$", "", re.split(r": ", error.where)[0])).name


def _field(error: UserError) -> str:
    """The keys of the field that an error is about, parted by blanks."""
    if named := re.match(r"(\w+) of .* in (\w+) is", error.what):
        return f"{named[2]} {named[1]}"
    if named := re.match(r"the id of '(.+)' is", error.what):
        return named[1]
    return re.match(r"([\w.]+)", error.what)[1].replace(".", " ")


def _write(*values: Any) -> Rule:
    return lambda match, error: [put(_file(error), _field(error), value) for value in values]


def _write_listed(match: re.Match[str], error: UserError) -> list[Edit]:
    return [put(_file(error), _field(error), value) for value in listed(match[1])]


def _line(match: re.Match[str], error: UserError) -> list[Edit]:
    number = int(error.where.rpartition(":")[2])

    def strip(folder: Path) -> None:
        path = folder / _file(error)
        lines = path.read_text().split("\n")
        lines[number - 1] = lines[number - 1].strip().removeprefix("\ufeff")
        path.write_text("\n".join(lines))

    return [strip]


def _without_line(match: re.Match[str], error: UserError) -> list[Edit]:
    return [line(_file(error), int(error.where.rpartition(":")[2]), None)]


def shell(command: str) -> Edit:
    """A command of the message, such as `cp`, in the folder."""
    return lambda folder: subprocess.run(["bash", "-c", command], cwd=folder, check=True) and None


def _three(match: re.Match[str], error: UserError) -> list[Edit]:
    fields = re.match(r"(\w+), (\w+) and (\w+) are|(\w+) and (\w+) are", error.what)
    names = [name for name in fields.groups() if name]

    def edit(value: bool) -> Edit:
        return lambda folder: [put(_file(error), name, value)(folder) for name in names] and None

    return [edit(True), edit(False)]


# What a fix says -> edits that follow it; the first that fits.
RULES: dict[str, Rule] = {
    r"^write true or false$": lambda match, error: (_three if re.match(r"\w+(, \w+)* and \w+ are", error.what) else _write(True, False))(
        match, error
    ),
    r"^write true or false, or remove it$": _write(True, False, GONE),
    r"^write true, false or null$": _write(True, False, None),
    r"^write null$": _write(None),
    r"^write a list of (?:pieces|names)$": _write([]),
    r"^write a number of tokens$": _write(512),
    r"^write a whole number$": _write(1),
    r"^write (left) or (right)$": _write("left", "right"),
    r"^remove the field$": _write(GONE),
    r"^leave the tokenizer.json to use and remove the field$": _write(GONE),
    r"^remove (?:it|the white space)": _line,
    r"^remove the line": _without_line,
    r"^set it to (\d+), the rows of the classifier": _write_listed,
    r"^set it to (.+), or remove it$": lambda match, error: [*_write_listed(match, error), *_write(GONE)(match, error)],
    r"^only (\S+) can be converted$": _write_listed,
    r"^`(cp .+)` gives it the name": lambda match, error: [shell(match[1])],
    r"^(.+) can be converted$": _write_listed,
}


def advised(error: UserError, edits: tuple[Edit, ...], more: Mapping[str, Rule] = MappingProxyType({})) -> list[tuple[Edit, ...]]:
    """The edits that an error's advice names, each after those that led to it."""
    for pattern, rule in {**more, **RULES}.items():
        if match := re.search(pattern, error.fix):
            return [(*edits, one) for one in rule(match, error)]
    raise AssertionError(f"{error.made}: no rule follows the advice of {error}")
