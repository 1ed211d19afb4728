"""The published hyper-parameters of fine-tuning for a model and a task; `families/*/hyperparameters.py` has the numbers."""

import contextlib
from typing import Any

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.families.hyperparameters import Hyperparameters, Numbers
from jaxenc.tasks.glue import GLUE

# The tasks that a recipe may ask for; `text` is one's own.
KNOWN = (*GLUE, "squad", "squad2", "swag", "race", "text")


def numbers(model: ModelConfig, task: str) -> dict[str, Any]:
    """The published settings of the family of `model` for a task; the family's general ones if it has none for the task.

    Raises UserError for a task that is not in KNOWN and for a family without published fine-tuning.
    """
    if task not in KNOWN:
        raise UserError(f"published is {task!r}", fix=f"use {', '.join(KNOWN)}, or '' for the numbers of the recipe")
    return of(model).numbers(task, model.layers)


def source(model: ModelConfig, given: Numbers) -> str:
    """Where the numbers `given` are published, for any task and the family of `model`; '' if they are not."""
    with contextlib.suppress(UserError):
        if any(all(numbers(model, task).get(path) == value for path, value in given.items()) for task in KNOWN):
            return of(model).source
    return ""


def of(model: ModelConfig) -> Hyperparameters:
    """The published fine-tuning of the family of `model`. Raises UserError as `numbers`."""
    if model.fine_tuning is None:
        fix = "set published='' and numbers of your own, such as optim.lr and train.epochs"
        raise UserError(f"no fine-tuning of {model.kind} is published whose numbers are known here", fix=fix)
    return model.fine_tuning
