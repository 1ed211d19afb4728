"""How fast a recipe's training step is on this machine, without data: random rows of the recipe's shape."""

import dataclasses
import time
from collections.abc import Mapping

import jax
import numpy as np
from jax.sharding import Mesh

from jaxenc import rng
from jaxenc.bench import kinds
from jaxenc.bench.clock import Seconds, seconds_a_call
from jaxenc.data import characters
from jaxenc.data.batch import Batch, Field, empty
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families import MODELS
from jaxenc.progress import Bars
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import partition
from jaxenc.training import memory, perf
from jaxenc.training import state as states
from jaxenc.training import teacher as teachers
from jaxenc.training.run import Run
from jaxenc.training.step import StepReport, compile_step, fields

WARM_UP = 3


@dataclasses.dataclass(frozen=True)
class Timing:
    """compile_s: trace, lower and compile, cold. step_ms, cpu_ms: medians over groups of steps, by the clock and in CPU time of all
    threads (user and system). planned_gb: the memory of a step on one device as `training.memory` plans it; peak_gb: what was used, 0 where
    it is not known. kinds: milliseconds of a step by kind of kernel, as
    `bench.kinds` counts them; None where they were not asked for."""

    device: str
    devices: int
    rows: int
    length: int
    compile_s: float
    step_ms: float
    cpu_ms: float
    tokens_per_second: float
    mfu: float
    planned_gb: float
    peak_gb: float
    kinds: Mapping[str, float] | None


def time_step(run: Run, vocabulary: Vocabulary, steps: int, by_kind: bool = False) -> Timing:
    """Times the first phase's step on full rows of random text: after three steps to warm up, `steps` of them in groups as
    `seconds_a_call` makes them. by_kind: profile three more steps for `Timing.kinds`."""
    phase, mesh = run.plan[0], meshes.make(run.mesh)
    teacher = teachers.model_of(run.objective, MODELS)
    objective = run.build(vocabulary, phase, meshes.platform(mesh.devices.flat[0]), teacher=teacher)
    layout = states.layout(objective, run.optim, phase.batch, mesh, run.mesh.preset)
    taken = {name: objective.fields[name] for name in fields(objective, run.train)}
    batch = partition.place(random_rows(taken, phase.batch, phase.length, vocabulary), mesh)
    with jax.set_mesh(mesh):
        state, seed = layout.create(rng.init_key(run.train.seed)), np.int32(run.train.seed)
        began = time.monotonic()
        with Bars().shown(f"compiling the step: {phase.batch:,} rows of {phase.length:,} tokens"):
            step = compile_step(objective, run.train, run.optim, phase, layout).lower(state, batch, seed).compile()
        compile_s = time.monotonic() - began

        def once() -> StepReport:
            nonlocal state
            state, report = step(state, batch, seed)
            return report

        for _ in range(WARM_UP):
            report = once()
        jax.block_until_ready(report)
        seconds = seconds_a_call(once, steps)
        times = kinds.milliseconds_by_kind(step.as_text(), once) if by_kind else None
    planned = memory.of_step(step, objective, run, phase, layout).total
    return _timing(mesh, phase.batch, phase.length, compile_s, seconds, objective.flops(phase.length), planned, times)


def random_rows(taken: Mapping[str, Field], rows: int, length: int, vocabulary: Vocabulary) -> Batch:
    """Full rows of one segment, with the fields `taken`: random ids that are text, each a word, forward and backward in turn; targets are
    others, and a word's characters are the digits of its id. Everything else is zero."""
    ids, draw = np.setdiff1d(np.arange(vocabulary.size), vocabulary.reserved), np.random.default_rng(0)
    drawn = {name: draw.choice(ids, (rows, length)) for name in ("tokens", "targets", "reverse_tokens", "reverse_targets")}
    spelled = lambda ids: characters.of_words([str(index) for index in ids.flat]).reshape(*ids.shape, characters.WIDTH)
    values = {
        **drawn,
        **{name: spelled(drawn[name.replace("characters", "tokens")]) for name in taken if name.endswith("characters")},
        "segments": 1,
        "positions": np.arange(length),
        "word_starts": 1,
        "index": np.arange(rows),
        "direction": 1 - np.arange(rows) % 2 * 2,
    }
    batch = empty(taken, rows, length, taken)
    for name, array in batch.items():
        array[:] = values.get(name, 0)
    return batch


def _timing(
    mesh: Mesh,
    rows: int,
    length: int,
    compile_s: float,
    seconds: Seconds,
    flops_per_row: float,
    planned: int,
    by_kind: Mapping[str, float] | None,
) -> Timing:
    device = mesh.devices.flat[0]
    peak = (device.memory_stats() or {}).get("peak_bytes_in_use", 0)
    mfu = perf.utilisation(flops_per_row, rows / seconds.wall, device.device_kind, mesh.size)
    times = {"step_ms": seconds.wall * 1e3, "cpu_ms": seconds.cpu * 1e3, "tokens_per_second": rows * length / seconds.wall}
    return Timing(
        device.device_kind,
        mesh.size,
        rows,
        length,
        compile_s,
        **times,
        mfu=mfu,
        planned_gb=planned / 1e9,
        peak_gb=peak / 1e9,
        kinds=by_kind,
    )
