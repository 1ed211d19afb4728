"""A run with its data, devices and work directory."""

import dataclasses
import pathlib
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
from jax.sharding import Mesh

from jaxenc.data.pipeline import Batches
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families import Models
from jaxenc.heads import Head
from jaxenc.objectives.base import Objective
from jaxenc.processes import barriers
from jaxenc.progress import Bars
from jaxenc.sharding import mesh as meshes
from jaxenc.training.attention import Attention, with_backend
from jaxenc.training.phases import Phase
from jaxenc.training.profile import Steps
from jaxenc.training.run import Run
from jaxenc.training.state import Layout, layout
from jaxenc.training.teacher import Teacher

T = TypeVar("T")
# From {head: [rows, ...]}, the predictions of all held-out rows in order, to {name: number}.
Judge = Callable[[Mapping[str, np.ndarray]], Mapping[str, float]]


class Programs:
    """Owner of what a run builds once: objectives, layouts and compiled functions. Runs that differ in seed and directory only share it."""

    def __init__(self) -> None:
        self._built: dict[Hashable, Any] = {}

    def once(self, key: Hashable, build: Callable[[], T]) -> T:
        """The result of `build` for `key`, called the first time only."""
        if key not in self._built:
            self._built[key] = build()
        return self._built[key]


@dataclasses.dataclass(frozen=True)
class Job:
    """The input of training and evaluation.

    vocabulary: of the data's tokenizer. batches(split, phase, rows): opens the batches of `train` or `held_out` at the lengths of a
    phase, with `rows` rows in a global batch. evaluates: whether any document is held out. directory: the work directory. files: {name:
    content} of what every checkpoint holds next to the state. heads: those that the objective may name; models: the kinds of model that a
    config.json may name. attention: its implementation for each length of rows. teacher: of an objective that has one, else None. judge:
    what a task makes of the predictions of the held-out rows; None for a run whose held-out numbers are those of its loss. profiled:
    the steps that are traced. bars: show what is running, in process 0.
    """

    run: Run
    vocabulary: Vocabulary
    mesh: Mesh
    batches: Callable[[str, Phase, int], Batches]
    evaluates: bool
    directory: pathlib.Path
    files: Mapping[str, bytes]
    heads: Mapping[str, Head]
    models: Models
    attention: Attention
    teacher: Teacher | None = None
    judge: Judge | None = None
    profiled: Steps = Steps()
    programs: Programs = dataclasses.field(default_factory=Programs)
    bars: Bars = dataclasses.field(default_factory=lambda: Bars(barriers.is_primary()))

    def objective(self, phase: Phase) -> Objective:
        """The objective of a phase, or of one of `Run.in_lengths`, for the platform of the mesh. The first call for each builds it, and may
        trace its models."""
        return self.programs.once(("objective", phase), lambda: self._build(phase))

    def _build(self, phase: Phase) -> Objective:
        run = with_backend(self.run, self.attention.backends[phase.length])
        teacher = self.teacher.model if self.teacher else None
        return run.build(self.vocabulary, phase, meshes.platform(self.mesh.devices.flat[0]), self.heads, teacher)

    def layout(self, phase: Phase) -> Layout:
        """The shapes and shardings of the state in a phase. The first call for a phase traces the model, which takes a second or more for a
        large one."""
        run, mesh = self.run, self.mesh
        build = lambda: layout(self.objective(phase), run.optim, phase.batch, mesh, run.mesh.preset)
        return self.programs.once(("layout", phase), build)
