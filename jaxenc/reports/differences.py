"""Which settings of a run differ from its recipe, and of several runs from each other."""

import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc import config
from jaxenc.reports.history import History

NONE = "-"  # a field that a run does not have


def recipe_name(run: History) -> str:
    """What the command of the last start named with `--config`, '' where there is none."""
    command = run.start.get("command", [])
    for i, item in enumerate(command):
        if item == "--config" and i + 1 < len(command):
            return command[i + 1]
        if item.startswith("--config="):
            return item.removeprefix("--config=")
    return ""


def commands(run: History) -> list[str]:
    """The command of each start as a shell takes it, without repetitions in a row; the program is named without its folder."""
    lines = []
    for words in (row["command"] for row in run.events if row["event"] == "start"):
        path = pathlib.PurePath(words[0] if words else "")
        lines.append(shlex.join([path.parent.name if path.name == "__main__.py" else path.name, *words[1:]]))
    return [line for i, line in enumerate(lines) if i == 0 or line != lines[i - 1]]


def settings(fields: Mapping[str, Any]) -> dict[str, str]:
    """{dotted path: value as a text} of the content of a config.json."""
    return {path: text(value) for path, value in config.flatten(dict(fields))}


def text(value: Any) -> str:
    """A setting as a text; a tuple as its items with commas."""
    return ",".join(map(text, value)) if isinstance(value, (list, tuple)) else str(value)


def of_recipe(run: History, recipe: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """{dotted path: (value in the run, value in the recipe)} of what differs. A field that the recipe lacks counts: its model may be of
    another kind."""
    own, given = settings(run.settings.fields), settings(recipe)
    return {path: (value, given.get(path, NONE)) for path, value in own.items() if value != given.get(path, NONE) and path != "format"}


def between(runs: Sequence[History]) -> dict[str, list[str]]:
    """{dotted path: value in each run} of what is not the same in all."""
    each = [settings(run.settings.fields) for run in runs]
    paths = dict.fromkeys(path for one in each for path in one)
    rows = {path: [one.get(path, NONE) for one in each] for path in paths}
    return {path: values for path, values in rows.items() if len(set(values)) > 1}
