"""What the baseline asks of the inside of jaxenc: the one file here to adapt when modules move."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxenc import rng, tree
from jaxenc.data.batch import Batch
from jaxenc.sharding import partition
from jaxenc.training import prepare
from jaxenc.training import step as steps
from jaxenc.training.job import Job
from jaxenc.training.phases import locate
from jaxenc.training.run import Run, from_dict
from jaxenc.training.state import parameters
from tests import tiny


@dataclasses.dataclass(frozen=True)
class Subject:
    """A prepared run at one of its steps, whose phase decides the shapes."""

    job: Job
    step: int

    @property
    def phase(self) -> Any:
        return self.job.run.plan[locate(self.job.run.plan, self.step)]

    def batch(self, step: int) -> Batch:
        """The whole batch that training step `step` (0-based) takes."""
        phase = self.phase
        return self.job.batches("train", phase, phase.batch).batch_at(step - phase.start, slice(None))

    def tree(self) -> dict[str, str]:
        """{path: `shape names`} of every parameter: its shape and the logical names of its axes."""
        shapes, names = parameters(self.job.objective(self.phase))
        axes = {path: "x".join(map(str, leaf.shape)) for path, leaf in tree.leaves(shapes)}
        return {path: f"{axes[path]} {','.join(map(str, leaf))}" for path, leaf in tree.leaves(names)}

    def corrupted(self, numbers: Sequence[int]) -> dict[str, dict[str, str]]:
        """{step: {field: digest}} of the corrupted rows that each of these training steps learns from."""
        config, objective, phase, mesh = self.job.run.train, self.job.objective(self.phase), self.phase, self.job.mesh

        @jax.jit
        def corrupt(step: jax.Array, rows: Batch) -> Batch:
            keys = steps.corruption_keys(config, config.seed, rng.training(config.seed, step, phase.batch), rows)
            return steps.corrupt(objective, keys, rows, mesh)

        found = {}
        with jax.set_mesh(mesh):
            for number in numbers:
                batch = self.batch(number)
                taken = partition.place({name: batch[name] for name in steps.fields(objective, config)}, mesh)
                example = corrupt(np.int32(number), taken)
                found[str(number)] = {name: digest(np.asarray(array)) for name, array in sorted(example.items())}
        return found

    def compiled(self) -> tuple[str, tiny.Compiled]:
        """(StableHLO text, compiled step) of this step's phase, as the training loop compiles it."""
        run, objective, phase = self.job.run, self.job.objective(self.phase), self.phase
        with jax.set_mesh(self.job.mesh):
            place = self.job.layout(phase)
            step = steps.compile_step(objective, run.train, run.optim, phase, place)
            split = partition.batch_sharding(self.job.mesh)
            rows = {name: self.batch(self.step)[name] for name in steps.fields(objective, run.train)}
            shapes = {name: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=split) for name, array in rows.items()}
            lowered = step.lower(place.abstract, shapes, jax.ShapeDtypeStruct((), np.int32))
            return lowered.as_text(), tiny.Compiled(objective, self.job.mesh, place, lowered.compile(), "")

    def first_step(self, compiled: tiny.Compiled) -> dict[str, float]:
        """{name: number}, as metrics.jsonl has them, of one step from fresh parameters on the first batch of the phase."""
        objective, config = self.job.objective(self.phase), self.job.run.train
        rows = {name: array for name, array in self.batch(self.phase.start).items() if name in steps.fields(objective, config)}
        with jax.set_mesh(self.job.mesh):
            _, report = compiled.run(rows, compiled.layout.create(rng.init_key(config.seed)), config.seed)
        numbers = {name: float(report[name]) for name in ("loss", "gradient_norm", "lr", "skipped")}
        return numbers | {name: float(value) for name, value in sorted(objective.summary(report["metrics"]).items())}


def subject(config: Path, data: Path, step: int, preset: str = "dp") -> Subject:
    """The run of a config.json on a data folder, under a mesh preset."""
    run: Run = from_dict(json.loads(config.read_text()))
    data_config, mesh = dataclasses.replace(run.data, path=str(data)), dataclasses.replace(run.mesh, preset=preset)
    return Subject(prepare.prepare(dataclasses.replace(run, data=data_config, mesh=mesh), config.parent), step)


def digest(array: np.ndarray) -> str:
    """Sixteen hex digits of the sha256 of an array's dtype, shape and bytes."""
    head = f"{array.dtype}{list(array.shape)}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
