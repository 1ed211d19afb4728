"""The memory that a training step takes on each device, before it runs: from the compiler, of a step that is compiled from shapes."""

import dataclasses
import math
import re
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.stages import Compiled, Lowered

from jaxenc.data.batch import empty
from jaxenc.errors import no_memory
from jaxenc.objectives.base import Objective
from jaxenc.sharding import partition
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run
from jaxenc.training.state import Layout
from jaxenc.training.step import compile_step, fields


@dataclasses.dataclass(frozen=True)
class StepMemory:
    """Bytes on each device during a step.

    parameters: trained and frozen. gradients: of the trained ones. activations: everything else that the step allocates and frees.
    """

    parameters: int
    moments: int
    carry: int
    batch: int
    gradients: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(dataclasses.astuple(self))

    @property
    def state(self) -> int:
        """What stays from step to step."""
        return self.parameters + self.moments + self.carry


@dataclasses.dataclass(frozen=True)
class TooLarge:
    """A step that the compiler refuses as too large, as that of TPUs does. memory: of the step, as far as the message says, else 0. said:
    the message."""

    memory: StepMemory
    said: str


def on_each_device(abstract: Any) -> int:
    """Bytes of a pytree on each device. abstract: of ShapeDtypeStructs with shardings, such as `Layout.abstract`."""
    size = lambda leaf: math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
    return sum(map(size, jax.tree.leaves(abstract)))


def lowered(objective: Objective, run: Run, phase: Phase, layout: Layout) -> Lowered:
    """The step of a phase, lowered from shapes: no array is made. Call it under `jax.set_mesh`."""
    step = compile_step(objective, run.train, run.optim, phase, layout)
    return step.lower(layout.abstract, _batch(objective, run, phase, layout.mesh), jax.ShapeDtypeStruct((), np.int32))


def of_step(step: Compiled, objective: Objective, run: Run, phase: Phase, layout: Layout) -> StepMemory:
    """The memory of a compiled step, from its arguments and the compiler's `memory_analysis`."""
    stats = step.memory_analysis()
    held = stats.temp_size_in_bytes + stats.generated_code_size_in_bytes
    held += max(0, stats.output_size_in_bytes - stats.alias_size_in_bytes)  # what does not take the place of the old state
    return _parts(held, objective, run, phase, layout)


def _parts(held: int, objective: Objective, run: Run, phase: Phase, layout: Layout) -> StepMemory:
    """held: bytes of a device that the step allocates besides its arguments."""
    state, batch = layout.abstract, on_each_device(_batch(objective, run, phase, layout.mesh))
    gradients = on_each_device(state.params)
    parts = (gradients + on_each_device(state.frozen), on_each_device(state.moments), on_each_device(state.carry), batch)
    return StepMemory(*parts, gradients=min(gradients, held), activations=max(0, held - gradients))


def compiled(objective: Objective, run: Run, phase: Phase, layout: Layout) -> Compiled | TooLarge:
    """The step of a phase, compiled for the devices of `layout`, which need not be here. Runs nothing."""
    # On a CPU: the same memory in half the time of compiling.
    fast = {"xla_backend_optimization_level": 0} if layout.mesh.devices.flat[0].platform == "cpu" else {}
    with jax.set_mesh(layout.mesh):
        try:
            return lowered(objective, run, phase, layout).compile(compiler_options=fast)
        except jax.errors.JaxRuntimeError as error:
            if what := no_memory(error):
                state = on_each_device(layout.abstract) + on_each_device(_batch(objective, run, phase, layout.mesh))
                return TooLarge(_parts(held_beside(str(error), state), objective, run, phase, layout), what)
            raise


def held_beside(message: str, arguments: int) -> int:
    """Bytes that a step needs besides its arguments, by the message of TPUs' compiler; 0 where it has none. arguments: their bytes."""
    if temporary := re.search(r"HLO temporaries \(([\d.]+)([KMGT])\)", message):
        return _bytes(*temporary.groups())
    if whole := re.search(r"Used ([\d.]+)([KMGT]) of [\d.]+[KMGT] hbm", message):
        return max(0, _bytes(*whole.groups()) - arguments)
    return 0


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * 1024 ** (1 + "KMGT".index(unit)))


def plan(objective: Objective, run: Run, phase: Phase, layout: Layout) -> StepMemory | str:
    """The memory of the step of a phase on the devices of `layout`. Compiles the step and runs nothing. A message where the compiler itself
    finds too little memory."""
    step = compiled(objective, run, phase, layout)
    if isinstance(step, TooLarge):
        return f"{step.said}: it does not fit"
    return of_step(step, objective, run, phase, layout)


def verdict(memory: StepMemory, run: Run, phase: Phase, mesh: Mesh, room: float) -> str:
    """Whether a step fits in `room` bytes of each device of `mesh`, and otherwise what to change."""
    if memory.total <= room:
        return f"fits in {room / 1e6:,.1f} MB"
    return f"does not fit in {room / 1e6:,.1f} MB: {advice(memory, run, phase, mesh, room)}"


def advice(memory: StepMemory, run: Run, phase: Phase, mesh: Mesh, room: float) -> str:
    """What makes a step smaller that takes more than `room` bytes."""
    if memory.state + memory.gradients > room:
        split = run.mesh.preset == "dp" and mesh.size > 1
        change = "set mesh.preset=fsdp" if split else "use more devices or a smaller model"
        return f"the state and the gradients alone do not: {change}"
    rows = phase.batch // (mesh.shape["data"] * mesh.shape["fsdp"] * run.train.microbatches)
    ways = {
        f"set train.microbatches={2 * run.train.microbatches} or more": rows % 2 == 0,
        "lower train.batch": rows > 1,
        "set train.remat=block": run.train.remat == "none" and "train.remat" not in run.unused,
        "use more devices": rows == 1,
    }
    return ", or ".join(way for way, helps in ways.items() if helps)


def _batch(objective: Objective, run: Run, phase: Phase, mesh: Mesh) -> dict[str, jax.ShapeDtypeStruct]:
    taken, by_row = fields(objective, run.train), partition.batch_sharding(mesh)
    rows = empty(taken, 1, phase.length, objective.fields)
    return {name: jax.ShapeDtypeStruct((phase.batch, *row.shape[1:]), row.dtype, sharding=by_row) for name, row in rows.items()}
