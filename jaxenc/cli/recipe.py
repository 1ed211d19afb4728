"""From `--config NAME|FILE.py|config.json --config.x.y=value ...` to a Run."""

import ast
import difflib
import importlib
import importlib.util
import inspect
import pathlib
import re
import shlex
import traceback
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

import jaxenc.configs
from jaxenc import config
from jaxenc.checkpoint.restore import convert_source
from jaxenc.cli import effect
from jaxenc.data import mixture
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.files import read_json
from jaxenc.storage import READ_HERE, must_be_local
from jaxenc.training import override, refusals
from jaxenc.training.run import Run, from_dict, tables

HELP = "a recipe such as bert/base, a FILE.py of yours, or a run's config.json; --config.FIELD=VALUE sets a field (inspect --fields: which)"


def resolve(name: str, overrides: Sequence[str]) -> Run:
    """The run that `name` describes, with `--config.FIELD=VALUE` overrides applied.

    name: a recipe of this package (`bert/base`, `bert/sizes:4x512`), a Python file of the user with `get_config`, which is executed, or a
    config.json of a run, which is only parsed. overrides: `--config.FIELD=VALUE` items, for the fields, aliases and kinds of
    `training.override`. Raises UserError for anything invalid, with the nearest names. Warns on stderr as `effect.check`.
    """
    recipe = _load(name)
    run = override.override(recipe, parsed(recipe, overrides, tables(MODELS)))
    effect.check(recipe, run, overrides)
    return run


def of_evaluation(overrides: Sequence[str]) -> dict[str, Any]:
    """{dotted path: value} of `--config.FIELD=VALUE` overrides of the evaluation of a checkpoint. Raises UserError as
    `refusals.refuse_fixed`, and for a value of another type. Warns on stderr of a field that an evaluation does not read."""
    refusals.refuse_fixed(path for path, _ in map(_split, overrides))
    effect.check_evaluation(overrides)
    return parsed(Run(), overrides, tables(MODELS))


def with_vocabulary(run: Run, overrides: Sequence[str]) -> tuple[Run, Vocabulary]:
    """(`run` with the numbers of its vocabulary; that vocabulary): of the tokenizer of its data, or the one that its model stands for where
    it names no data. Raises UserError for a folder without data, and as `effect.check_data`."""
    effect.check_data(run, overrides)
    vocabulary = mixture.manifests(run.data)[0].tokenizer if run.data.folders else run.model.published_vocabulary
    return run.with_vocabulary(vocabulary), vocabulary


def names() -> list[str]:
    """Every recipe of the package, such as `bert/base`."""
    root = pathlib.Path(jaxenc.configs.__path__[0])
    files = (path.relative_to(root) for path in root.glob("*/*.py") if path.name != "__init__.py")
    return sorted(str(path.with_suffix("")).replace("\\", "/") for path in files)


def _load(name: str) -> Run:
    data = read(name)
    if "task" in data:
        fix = "use it with `jaxenc finetune`; `jaxenc inspect --fields` prints its fields"
        raise UserError("a fine-tuning recipe", f"--config {name}", fix)
    try:
        return from_dict(data)
    except UserError as error:
        raise error.at(f"--config {name}") if is_file(name) else error from error


def read(name: str) -> dict[str, Any]:
    """The fields of what `name` describes, as in `resolve`. Raises UserError."""
    must_be_local(name, "--config", READ_HERE)
    path, _, argument = name.partition(":")
    if path.endswith(".json"):
        return _from_json(pathlib.Path(path))
    if path.endswith(".py"):
        return _from_file(pathlib.Path(path), argument)
    return _call(_from_package(path), path, argument).to_dict()


def is_file(name: str) -> bool:
    """Whether `name` is a file of the user and no recipe of the package."""
    return name.partition(":")[0].endswith((".json", ".py"))


def _from_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        data = read_json(path, "name a run's config.json")
    except UserError as error:
        raise UserError(error.what, f"--config {error.where}", error.fix) from error
    _refuse_others(str(path), path.parent)
    return data


def _refuse_others(name: str, folder: pathlib.Path) -> None:
    """Raises UserError where the config.json in `folder` is one of transformers."""
    if source := convert_source(folder):
        how = f"`jaxenc convert --from {shlex.quote(source)} --to DIR` writes a run's"
        raise UserError("its config.json is one of transformers", f"--config {name}", how)


def _from_file(path: pathlib.Path, argument: str) -> dict[str, Any]:
    """The dict that the user's `get_config` returns. Any exception in their file becomes a UserError with file and line."""
    if not path.is_file():
        raise UserError("no such file", f"--config {path}", "name a recipe or a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        if not hasattr(module, "get_config"):
            raise UserError("it has no function get_config() that returns a ConfigDict", f"--config {path}", "add one")
        recipe = _call(module, str(path), argument)
    except UserError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(why, f"--config {path}:{_line(error, path)}", "fix the file") from error
    if not isinstance(recipe, ConfigDict):
        raise UserError(f"get_config returns {type(recipe).__name__}", f"--config {path}", "return jaxenc.configs.recipe(Run(...))")
    return recipe.to_dict()


def _line(error: Exception, path: pathlib.Path) -> int:
    """The last line of the file `path` that `error` came through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), 1)


def _call(module: Any, name: str, argument: str) -> Any:
    """Calls `get_config` of a recipe, with the text after the colon in its name if there is one."""
    if argument and not inspect.signature(module.get_config).parameters:
        raise UserError("this recipe takes nothing after a colon", f"--config {name}:{argument}", f"name {name}")
    return module.get_config(*[argument] * bool(argument))


def _from_package(name: str) -> Any:
    if name not in names():
        if (pathlib.Path(name) / "config.json").is_file():
            _refuse_others(name, pathlib.Path(name))
            raise UserError("a folder", f"--config {name}", f"did you mean {pathlib.Path(name) / 'config.json'}?")
        close = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
        families = ", ".join(dict.fromkeys(known.partition("/")[0] for known in names()))
        meant = f"did you mean {', '.join(close)}?" if close else f"a recipe is FAMILY/SIZE, such as bert/base, of {families};"
        raise UserError("no such recipe", f"--config {name}", f"{meant} a file of your own ends in .py")
    return importlib.import_module("jaxenc.configs." + name.replace("/", "."))


def parsed(recipe: Any, overrides: Sequence[str], kinds: config.Tables) -> dict[str, Any]:
    """{dotted path: value} of `overrides` of a dataclass of settings, parsed by ml_collections with the types of the fields, those of a
    changed kind included. kinds: the tables of `config.from_dict`. Raises UserError."""
    texts = dict(_split(item) for item in overrides)
    recipe = override.of_kinds(recipe, texts, kinds)
    override.check_names(recipe, texts)
    data = config.to_dict(recipe)
    values, argv = flags.FlagValues(), ["jaxenc", *_items(texts, dict(config.flatten(data)), set(config.paths_of_strings(recipe)))]
    config_flags.DEFINE_config_dict("config", ConfigDict(data), flag_values=values, sys_argv=argv)
    try:
        values(argv)
    except (flags.Error, TypeError, ValueError, AttributeError, KeyError) as error:
        said = re.sub(r": invalid literal for int\(\) with base 10: .*", " is not a whole number", str(error).splitlines()[0])
        said = re.sub(r": could not convert string to float: .*", " is not a number", said)
        said = re.sub(r": \('Non-boolean argument to boolean flag', .*", " is not true or false", said)
        raise UserError(said.removeprefix("flag "), fix="give a value of the field's type") from error
    parsed = dict(config.flatten(values["config"].value.to_dict()))
    return {path: parsed[path] for path in texts}


def _split(item: str) -> tuple[str, str]:
    """(dotted path, text) of an override."""
    path, equals, text = item.removeprefix("--config.").partition("=")
    if not item.startswith("--config.") or not equals:
        raise UserError("not --config.FIELD=VALUE", item, "write it so, as in --config.train.steps=100")
    return path, text


def _items(texts: Mapping[str, str], known: Mapping[str, Any], strings: Collection[str]) -> list[str]:
    """The overrides, each field once, with the values of tuple fields as Python tuples: `1,2`, `(1, 2)` and `5` become numbers, other words
    strings. strings: the paths of the tuples of str, in which `1,2` are strings too. A field that came twice has its last value:
    ml_collections would put two tuples together."""

    def written(path: str, text: str) -> str:
        if not isinstance(known[path], tuple):
            return text
        return repr(_strings(text) if path in strings else _tuple(text))

    return [f"--config.{path}={written(path, text)}" for path, text in texts.items()]


def _strings(text: str) -> tuple[str, ...]:
    """The strings between the commas of `text`, as `_tuple` finds them; numbers, True and None are strings as they are written."""
    value = _tuple(text)
    if all(isinstance(one, str) for one in value):
        return value
    inner = re.sub(r"^[(\[]?(.*?),?[)\]]?$", r"\1", text.strip())
    return tuple(one.strip().strip("'\"") for one in inner.split(","))


def _tuple(text: str) -> tuple[Any, ...]:
    try:
        value = ast.literal_eval(text or "()")
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return tuple(text.split(","))
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
