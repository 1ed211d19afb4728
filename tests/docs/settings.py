"""Command lines of the pages against the parser of `jaxenc` and the settings of its recipes; nothing is run."""

import argparse
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc import config
from jaxenc.cli import main
from jaxenc.cli import recipe as cli_config
from jaxenc.families import MODELS
from jaxenc.tasks import recipe as task_recipe
from jaxenc.tasks import tuning
from jaxenc.training import override
from jaxenc.training.run import Run, tables


def check(argv: Sequence[str]) -> argparse.Namespace | None:
    """Parses the words after `jaxenc`, and resolves the recipe with the fields that they set. `...` stands for the options that the command
    needs. Raises UserError as the command would; None for a command line that only asks for help."""
    overrides = [word for word in argv if word.startswith("--config.")]
    given = [word for word in argv if word not in overrides]
    if "--help" in given:
        assert given == ["--help"] or given[0] in main.COMMANDS, given
        return None
    if "..." in given:
        given.remove("...")
        given += [word for option in _required(given) for word in (option, "NAME")]
    args = main._parser(given).parse_args(given)
    assert not overrides or args.command in main.CONFIGURED, f"{args.command} takes no config"
    name = getattr(args, "config", "") or ""
    if args.command == "evaluate":
        cli_config.of_evaluation(overrides)
    elif name.startswith("tasks/"):
        fields_of_task(name, overrides)
    elif name or overrides:
        fields_of_run(name, overrides)
    return args


def _required(given: Sequence[str]) -> list[str]:
    commands = next(action for action in main._parser(given)._actions if isinstance(action, argparse._SubParsersAction))
    needed = (action for action in commands.choices[given[0]]._actions if action.required and action.option_strings)
    return [action.option_strings[0] for action in needed if action.option_strings[0] not in given]


def fields_of_run(name: str, overrides: Sequence[str]) -> Run:
    """The run of a recipe; a file of the reader stands for one with the defaults. Raises UserError."""
    if name and not cli_config.is_file(name):
        return cli_config.resolve(name, overrides)
    return override.override(Run(), cli_config.parsed(Run(), overrides, tables(MODELS)))


def fields_of_task(name: str, overrides: Sequence[str]) -> tuning.FineTune:
    """The fine-tuning of a recipe, without what is published for the family of a model. Raises UserError."""
    tune = task_recipe.from_dict(cli_config.read(name))
    return task_recipe.changed(tune, cli_config.parsed(tune, overrides, task_recipe.KINDS))


@functools.cache
def all_fields() -> frozenset[str]:
    """The dotted path of every field of a run or of fine-tuning, of every kind of model, objective and task."""
    found = _paths(Run(), tables(MODELS))
    tune = task_recipe.from_dict(cli_config.read("tasks/text"))
    return frozenset(found | _paths(tune, task_recipe.KINDS))


def _paths(whole: Any, kinds: Mapping[str, Mapping[str, type]]) -> set[str]:
    paths = {path for path, _ in config.flatten(config.to_dict(whole))}
    for part, table in kinds.items():
        for cls in table.values():
            paths |= {f"{part}.{path}" for path, _ in config.flatten(config.to_dict(cls()))}
    return paths


def options_of(command: str) -> set[str]:
    """The options of a command, those of its own commands included."""
    commands = next(action for action in main._parser([command])._actions if isinstance(action, argparse._SubParsersAction))
    found, parsers = set(), [commands.choices[command]]
    for parser in parsers:
        found |= {option for action in parser._actions for option in action.option_strings}
        below = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        parsers += [one for action in below for one in action.choices.values()]
    return found


@functools.cache
def all_options() -> frozenset[str]:
    """The options of every command."""
    return frozenset({main.DEBUG}).union(*map(options_of, main.COMMANDS))
