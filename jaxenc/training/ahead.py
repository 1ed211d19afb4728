"""The step of a run, compiled for accelerators that this machine does not have: its memory, work, collectives and least time."""

import dataclasses
import math
import time
from collections.abc import Mapping

from jax.sharding import Mesh

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families import MODELS
from jaxenc.hlo import work
from jaxenc.hlo.collectives import Collective, collectives
from jaxenc.hlo.program import read
from jaxenc.objectives.base import Objective
from jaxenc.sharding import chips, partition
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding.topology import Topology
from jaxenc.training import memory, roofline
from jaxenc.training import state as states
from jaxenc.training import teacher as teachers
from jaxenc.training.memory import StepMemory, TooLarge
from jaxenc.training.phases import Phase
from jaxenc.training.roofline import Bound
from jaxenc.training.run import Run
from jaxenc.training.state import Layout

# The most compilations of `largest`.
TRIES = 6


@dataclasses.dataclass(frozen=True)
class Target:
    """A run on the devices of a topology. objectives: one a phase."""

    run: Run
    topology: Topology
    mesh: Mesh
    objectives: tuple[Objective, ...]

    @property
    def room(self) -> float:
        """Bytes that a step may take of each device."""
        return chips.of_kind(self.topology.kind).memory

    def layout(self, number: int, phase: Phase) -> Layout:
        """The layout of the state in phase `number`."""
        return states.layout(self.objectives[number], self.run.optim, phase.batch, self.mesh, self.run.mesh.preset)


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What the compiled step of a phase takes on each device. flops: of its matrix products; model_flops: of the model, nothing computed
    twice; traffic: bytes between the device and its memory. refused: the compiler's message for a step that is too large for it, else '';
    such a step has no flops, traffic or collectives. seconds: of compiling."""

    phase: Phase
    attention: str
    memory: StepMemory
    verdict: str
    fits: bool
    model_flops: float
    flops: float
    traffic: float
    collectives: tuple[Collective, ...]
    bound: Bound
    refused: str
    seconds: float


def target(run: Run, vocabulary: Vocabulary, topology: Topology) -> Target:
    """The run on the devices of `topology`. Compiles nothing. Raises UserError for what a run there would refuse: a mesh that the devices
    cannot form, rows and parameters that do not divide, a backend of attention that cannot run. Call it on the result of
    `Run.with_vocabulary`."""
    for phase in run.plan:  # before libtpu starts
        partition.check_rows(phase.batch, run.train.microbatches, meshes.abstract(run.mesh, topology.count))
    mesh = meshes.make(run.mesh, topology.devices())
    teacher = teachers.model_of(run.objective, MODELS)
    platform = meshes.platform(mesh.devices.flat[0])
    objectives = tuple(run.build(vocabulary, phase, platform, teacher=teacher) for phase in run.plan)
    found = Target(run, topology, mesh, objectives)
    for number, phase in enumerate(run.plan):
        found.layout(number, phase)
    return found


def forecast(found: Target, number: int, phase: Phase) -> Forecast:
    """Compiles the step of `phase`, which is phase `number` of the run, perhaps with another batch."""
    began = time.monotonic()
    objective, run, layout = found.objectives[number], found.run, found.layout(number, phase)
    step = memory.compiled(objective, run, phase, layout)
    if isinstance(step, TooLarge):
        planned, program, refused = step.memory, read(""), step.said
    else:
        planned, program, refused = memory.of_step(step, objective, run, phase, layout), read(step.as_text()), ""
    flops, traffic, sent = work.flops(program), work.traffic(program), collectives(program, found.mesh.size, found.topology.slices)
    room = found.room
    fits = not refused and planned.total <= room
    verdict = memory.verdict(planned, run, phase, found.mesh, room)
    if refused and planned.total <= room:
        verdict = f"does not fit in {room / 1e6:,.1f} MB: {memory.advice(planned, run, phase, found.mesh, room)}"
    return Forecast(
        phase,
        run.execution(meshes.platform(found.mesh.devices.flat[0]), phase.length).attention,
        planned,
        verdict,
        fits,
        objective.flops(phase.length) * phase.batch / found.mesh.size,
        flops,
        traffic,
        tuple(sent),
        roofline.bound(flops, traffic, sent, chips.of_kind(found.topology.kind)),
        refused,
        time.monotonic() - began,
    )


def rows_a_step(found: Target) -> int:
    """The number that a batch must be a multiple of: devices that share the rows times microbatches."""
    return found.mesh.shape["data"] * found.mesh.shape["fsdp"] * found.run.train.microbatches


def estimate(small: tuple[int, int], large: tuple[int, int], room: float) -> int:
    """The most rows whose step takes at most `room` bytes, by the straight line through two measured steps (rows, bytes); 0 for none.
    Raises ValueError for two equal numbers of rows."""
    (few, least), (many, most) = sorted((small, large))
    if few == many:
        raise ValueError(f"{few} rows twice")
    slope = (most - least) / (many - few)
    if slope <= 0:
        return many
    return max(0, int((room - (least - slope * few)) / slope))


def largest(found: Target, number: int, first: Forecast) -> Forecast:
    """The forecast of phase `number` with the largest batch that fits, within 4 % of its rows, which are a multiple of `rows_a_step`.
    first: the forecast with the phase's own batch. The memory of a step grows nearly linearly with its rows, so one to six compilations
    are enough. Where no batch fits, neither does the forecast."""
    unit, phase = rows_a_step(found), first.phase
    of_rows = lambda count: forecast(found, number, dataclasses.replace(phase, batch=count * unit))
    known = {phase.batch // unit: first}
    for _ in range(TRIES):
        most = max((count for count, one in known.items() if one.fits), default=0)
        least = min((count for count, one in known.items() if not one.fits), default=math.inf)
        if least - most <= max(1, most // 25):
            break
        guess = _next(known, most, least, found.room)
        known[guess] = of_rows(guess)
    fitting = [count for count, one in known.items() if one.fits]
    return known[max(fitting)] if fitting else known[min(known)]


def _next(known: Mapping[int, Forecast], most: int, least: float, room: float) -> int:
    """The next number of rows to try, more than `most`, which fits, and less than `least`, which does not."""
    said = {count: one.memory.total for count, one in known.items() if one.fits or one.memory.total > room}
    if len(known) == 1:
        return most * 2 or max(1, int(least) // 2)
    if least not in said and least < math.inf:  # the compiler did not say how much was missing
        return (most + int(least)) // 2
    near = sorted(said, key=lambda count: abs(said[count] - room))[:2]
    guess = estimate(*((count, said[count]) for count in near), room)
    return int(min(max(guess, most + 1), least - 1))
