"""A run together with what it reads, where it computes and where it writes."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping

from jax.sharding import Mesh

from jaxenc.data.pipeline import Batches
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families import Models
from jaxenc.heads import Head
from jaxenc.objectives.base import Objective
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run
from jaxenc.training.state import Layout, layout


@dataclasses.dataclass(frozen=True)
class Job:
    """What training and evaluation take.

    batches(split, phase, rows): those of `train` or `held_out` at a phase's length, `rows` rows in a global batch; it opens the data.
    evaluates: whether any document is held out. files: {name: content} that every checkpoint holds next to the state. heads: those that the
    objective may name; models: the kinds of model that a config.json may name.
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

    def objective(self, phase: Phase) -> Objective:
        """The objective at a phase's length, computed as this mesh's platform wants it."""
        return self.run.build(self.vocabulary, phase, self.mesh.devices.flat[0].platform, self.heads)

    def layout(self, phase: Phase) -> Layout:
        """The shapes and shardings of the state in a phase; traced when first asked for, which takes a second or more of a large model."""
        if phase not in self._layouts:
            self._layouts[phase] = layout(self.objective(phase), self.run.optim, phase.batch, self.mesh, self.run.mesh.preset)
        return self._layouts[phase]

    @functools.cached_property
    def _layouts(self) -> dict[Phase, Layout]:
        return {}
