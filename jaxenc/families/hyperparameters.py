"""The hyper-parameters of fine-tuning that a family's authors published, with their source."""

import dataclasses
from collections.abc import Mapping
from typing import Any

# {dotted path of a field of a fine-tuning run, such as optim.lr: value}
Numbers = Mapping[str, Any]

LARGE = 24  # layers of a large model


@dataclasses.dataclass(frozen=True, eq=False)
class Hyperparameters:
    """How a family is fine-tuned. source: where that is published. every: what holds for every task. tasks: what a task has in its place.
    large: what models of 24 layers or more have in the place of `every`, also before `tasks`. grid: the candidates, where there are some,
    of which the best on the dev set is to be taken; `every` has one of them."""

    source: str
    every: Numbers
    tasks: Mapping[str, Numbers] = dataclasses.field(default_factory=dict)
    large: Numbers = dataclasses.field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    def numbers(self, task: str, layers: int) -> dict[str, Any]:
        """The settings for a task and a model of so many layers: those for every task where the family has none of its own."""
        return {**self.every, **(self.large if layers >= LARGE else {}), **self.tasks.get(task, {})}


def in_steps(lr: float, batch: int, steps: int, warmup: int) -> dict[str, Any]:
    """The settings of a task whose length is published in steps."""
    return {"optim.lr": lr, "train.batch": batch, "train.steps": steps, "optim.warmup": warmup}
