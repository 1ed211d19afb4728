"""The settings of a fine-tuning run from a recipe, the family of the model and fields set by name."""

import dataclasses
import json
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from jaxenc import config
from jaxenc.checkpoint import migrate
from jaxenc.families.contract import ModelConfig
from jaxenc.files import read_json
from jaxenc.processes import barriers
from jaxenc.tasks import TASKS, low_rate, published
from jaxenc.tasks.task import Task
from jaxenc.tasks.tuning import FineTune
from jaxenc.training.override import with_values

# The file with these settings in the checkpoints of a fine-tuning run.
RECORD = "task.json"
Tasks = Mapping[str, type[Task]]
KINDS: config.Tables = {"task": TASKS}


def from_dict(data: Mapping[str, Any], where: str = "config", tasks: Tasks = TASKS) -> FineTune:
    """The FineTune of a plain dict, such as the content of a task.json. tasks: those that it may name. Raises UserError as
    `config.from_dict`."""
    return config.from_dict(FineTune, {name: value for name, value in data.items() if name != "format"}, where, {"task": tasks})


def of_checkpoint(step_dir: pathlib.Path, tasks: Tasks = TASKS) -> FineTune | None:
    """The settings of the fine-tuning run that wrote a checkpoint; None for a pretraining checkpoint. Raises UserError as `from_dict`."""
    path = step_dir / RECORD
    return from_dict(read_json(path, "name another step"), str(path), tasks) if path.is_file() else None


def to_json(tune: FineTune) -> bytes:
    """The content of a task.json, which `from_dict` reads."""
    return json.dumps({"format": migrate.FORMAT, **config.to_dict(tune)}, indent=1).encode()


def resolve(recipe: FineTune | Mapping[str, Any], model: ModelConfig, values: Mapping[str, Any]) -> FineTune:
    """`recipe` for one model: with the published hyper-parameters of the model's family, if the recipe asks for them, then with the fields
    at the dotted paths of `values`. Unless `values` sets their length, rows are shortened to the positions of the model, and the task to
    such rows (`Task.within`). Prints a line where the published rate is too low for a small model, unless `values` sets one. Raises
    UserError for an unknown field and for an invalid value."""
    recipe = recipe if isinstance(recipe, FineTune) else from_dict(recipe)
    task = values.get("published", recipe.published)
    numbers = {**published.numbers(model, task), "published": ""} if task else {}
    rest = {path: value for path, value in values.items() if path != "published"}
    tune = changed(recipe, numbers)
    if 0 < model.positions < tune.train.length and not tune.train.lengths:
        train = dataclasses.replace(tune.train, length=model.positions)
        tune = dataclasses.replace(tune, train=train, task=tune.task.within(model.positions))
    if task and "optim.lr" not in values and (line := low_rate.warning(model, tune.optim.lr)) and barriers.is_primary():
        print(line, file=sys.stderr, flush=True)
    return changed(tune, rest)


def changed(tune: FineTune, values: Mapping[str, Any]) -> FineTune:
    """`tune` with the fields at the dotted paths of `values`; its task may be of a kind of your own. Raises UserError as `from_dict`."""
    known = {**TASKS, tune.task.kind: type(tune.task)}
    return from_dict(with_values(tune, values, {"task": known}), tasks=known)
