"""Fine-tuning tasks. A new kind of task is a file beside this one and a name in TASKS."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from jaxenc.errors import UserError
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.regress import Regress
from jaxenc.tasks.span_qa import SpanQa
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.task import Task

# {kind: class} of the tasks that a recipe may name.
TASKS: Mapping[str, type[Task]] = MappingProxyType({task.kind: task for task in (Classify, Regress, Multilabel, Choice, Tag, SpanQa)})


def with_built_in(*own: type[Task]) -> Mapping[str, type[Task]]:
    """{kind: class} of the built-in tasks and `own`, for the argument `tasks` of `load` and `evaluate`. Raises UserError for a class that
    is not a frozen dataclass with a `kind`, and for a kind that is taken."""
    tasks = dict(TASKS)
    for task in own:
        name = getattr(task, "__name__", repr(task))
        if not (isinstance(task, type) and issubclass(task, Task) and dataclasses.is_dataclass(task) and hasattr(task, "kind")):
            raise UserError(f"{name} is not a task", fix="give a frozen dataclass that subclasses jaxenc.tasks.task.Task and has a `kind`")
        if task.kind in tasks:
            raise UserError(f"task {name}: the kind {task.kind!r} is taken", fix="give it another `kind`")
        tasks[task.kind] = task
    return MappingProxyType(tasks)
