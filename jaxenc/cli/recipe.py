"""From `--config NAME|FILE.py|config.json --config.x.y=value ...` to a Run."""

import ast
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import pathlib
import shlex
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

import jaxenc.configs
from jaxenc import config
from jaxenc.checkpoint.restore import of_others
from jaxenc.cli import effect
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.training.run import Run, from_dict

HELP = "a recipe such as bert/base, a FILE.py of yours, or a run's config.json; --config.FIELD=VALUE sets a field (inspect --fields: which)"


def resolve(name: str, overrides: Sequence[str]) -> Run:
    """The run that `name` describes, with `--config.FIELD=VALUE` overrides applied.

    name: a recipe of this package (`bert/base`, `bert/sizes:4x512`), a Python file of the user's own with `get_config`, which runs
    because they named it, or a config.json of a run, which is only read. Raises UserError for whatever does not fit, with near names.
    Warns on stderr of each field that is set and has no effect.
    """
    run = from_dict(_override(_of_kind(_load(name), overrides), overrides))
    effect.check(run, overrides)
    return run


def names() -> list[str]:
    """Every recipe of the package, such as `bert/base`."""
    root = pathlib.Path(jaxenc.configs.__path__[0])
    files = (path.relative_to(root) for path in root.glob("*/*.py") if path.name != "__init__.py")
    return sorted(str(path.with_suffix("")).replace("\\", "/") for path in files)


def _load(name: str) -> ConfigDict:
    path, _, argument = name.partition(":")
    if path.endswith(".json"):
        return _whole(_from_json(pathlib.Path(path)), path)
    if path.endswith(".py"):
        return _whole(_from_file(pathlib.Path(path), argument), path)
    return _call(_from_package(path), path, argument)


def _whole(data: dict[str, Any], path: str) -> ConfigDict:
    """`data` with the fields that it leaves at their defaults, so that overrides know them."""
    try:
        return ConfigDict(config.to_dict(from_dict(data)))
    except UserError as error:
        raise UserError(f"--config {path}: {error}") from error


def _from_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        data = read_json(path, "name a run's config.json")
    except UserError as error:
        raise UserError(f"--config {error}") from error
    _refuse_others(str(path), path.parent)
    return data


def _refuse_others(name: str, folder: pathlib.Path) -> None:
    """Raises UserError where the config.json in `folder` is one of transformers."""
    if source := of_others(folder):
        how = f"`jaxenc convert --from {shlex.quote(source)} --to DIR` writes a run's"
        raise UserError(f"--config {name}: its config.json is one of transformers: {how}")


def _from_file(path: pathlib.Path, argument: str) -> dict[str, Any]:
    """What the user's own `get_config` returns; whatever their file raises is one line that names its place there."""
    if not path.is_file():
        raise UserError(f"--config {path}: no such file: name a recipe or a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        if not hasattr(module, "get_config"):
            raise UserError(f"--config {path}: it has no function get_config() that returns a ConfigDict: add one")
        recipe = _call(module, str(path), argument)
    except UserError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"--config {path}:{_line(error, path)}: {why}: mend the file") from error
    if not isinstance(recipe, ConfigDict):
        raise UserError(f"--config {path}: get_config returns {type(recipe).__name__}: return jaxenc.configs.recipe(Run(...))")
    return recipe.to_dict()


def _line(error: Exception, path: pathlib.Path) -> int:
    """The last line of the file `path` that `error` came through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), 1)


def _call(module: Any, name: str, argument: str) -> Any:
    """`get_config` of a recipe, which takes what stands behind the colon of its name or nothing."""
    if argument and not inspect.signature(module.get_config).parameters:
        raise UserError(f"--config {name}:{argument}: this recipe takes nothing after a colon: name {name}")
    return module.get_config(*[argument] * bool(argument))


def _from_package(name: str) -> Any:
    if name not in names():
        if (pathlib.Path(name) / "config.json").is_file():
            _refuse_others(name, pathlib.Path(name))
            raise UserError(f"--config {name}: a folder: did you mean {pathlib.Path(name) / 'config.json'}?")
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.4) or names()
        raise UserError(f"--config {name}: no such recipe: did you mean {', '.join(close)}? A file of your own ends in .py")
    return importlib.import_module("jaxenc.configs." + name.replace("/", "."))


def _of_kind(recipe: ConfigDict, overrides: Sequence[str]) -> ConfigDict:
    """The recipe with each part whose `kind` is overridden as that kind's defaults, and the values of the fields that both kinds have."""
    given = dict(item.removeprefix("--config.").split("=", 1) for item in overrides if "=" in item)
    data = recipe.to_dict()
    for field in dataclasses.fields(Run):
        kind, before = given.get(f"{field.name}.kind"), data[field.name]
        table = field.metadata.get("kinds", {})
        if kind in table and kind != before.get("kind"):
            defaults = config.to_dict(table[kind]())
            data[field.name] = {name: before.get(name, value) for name, value in defaults.items()} | {"kind": kind}
    return ConfigDict(data)


def _override(recipe: ConfigDict, overrides: Sequence[str]) -> dict[str, Any]:
    """The recipe's dict after `overrides`, parsed by ml_collections with the types of the fields."""
    known = dict(config.flatten(recipe.to_dict()))
    for item in overrides:
        _check_name(item, known)
    values, argv = flags.FlagValues(), ["jaxenc", *_whole_tuples(overrides, known)]
    config_flags.DEFINE_config_dict("config", recipe, flag_values=values, sys_argv=argv)
    try:
        values(argv)
    except (flags.Error, TypeError, ValueError, AttributeError, KeyError) as error:
        raise UserError(f"{str(error).splitlines()[0].removeprefix('flag ')}: give a value of the field's type") from error
    return values["config"].value.to_dict()


def _check_name(item: str, known: Iterable[str]) -> None:
    path, equals, _ = item.removeprefix("--config.").partition("=")
    if not item.startswith("--config.") or not equals:
        raise UserError(f"{item}: overrides are written --config.FIELD=VALUE, such as --config.train.steps=100")
    if path not in set(known):
        close = difflib.get_close_matches(path, list(known), n=3, cutoff=0.5) or [p for p in known if p.endswith(path.split(".")[-1])]
        hint = f": did you mean {', '.join(close)}?" if close else ": `jaxenc inspect --config NAME` prints the fields"
        raise UserError(f"--config.{path} is not a field{hint}")


def _whole_tuples(overrides: Sequence[str], known: dict[str, Any]) -> list[str]:
    """`overrides`, with the values of tuple fields written as Python tuples: `1,2`, `(1, 2)` and `5` are numbers, other words strings."""
    out = []
    for item in overrides:
        path, _, text = item.removeprefix("--config.").partition("=")
        out.append(f"--config.{path}={_tuple(text)!r}" if isinstance(known[path], tuple) else item)
    return out


def _tuple(text: str) -> tuple[Any, ...]:
    try:
        value = ast.literal_eval(text or "()")
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return tuple(text.split(","))
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
