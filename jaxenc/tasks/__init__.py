"""Fine-tuning tasks. A new kind of task is a file beside this one and a name in TASKS."""

from collections.abc import Mapping
from types import MappingProxyType

from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.regress import Regress
from jaxenc.tasks.span_qa import SpanQa
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.task import Task

# {kind: class} of the tasks that a recipe may name.
TASKS: Mapping[str, type[Task]] = MappingProxyType({task.kind: task for task in (Classify, Regress, Multilabel, Choice, Tag, SpanQa)})
