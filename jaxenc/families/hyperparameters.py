"""The hyper-parameters of fine-tuning that a family's authors published, with their source."""

import dataclasses
from collections.abc import Mapping
from typing import Any

# {dotted path of a field of a fine-tuning run, such as optim.lr: its value}
Numbers = Mapping[str, Any]

LARGE = 24  # layers of a large model


@dataclasses.dataclass(frozen=True, eq=False)
class Hyperparameters:
    """How a family is fine-tuned.

    source: where that is published. every: the numbers for every task. large: those that replace them in models of LARGE layers or more.
    tasks: {task: those that replace both}. grid: {field: candidates} if the authors chose the best on the dev set; `every` has one of them.
    """

    source: str
    every: Numbers
    tasks: Mapping[str, Numbers] = dataclasses.field(default_factory=dict)
    large: Numbers = dataclasses.field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def numbers(self, task: str, layers: int) -> dict[str, Any]:
        """The settings of a model with so many layers for a task; those for every task if the task has none of its own."""
        return {**self.every, **(self.large if layers >= LARGE else {}), **self.tasks.get(task, {})}


def in_steps(lr: float, batch: int, steps: int, warmup: int) -> dict[str, Any]:
    """The settings of a task whose length is published in steps."""
    return {"optim.lr": lr, "train.batch": batch, "train.steps": steps, "optim.warmup": warmup}
