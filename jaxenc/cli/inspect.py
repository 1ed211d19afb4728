"""`jaxenc inspect`: parameters, phases and memory of a config, without running it."""

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh

from jaxenc import fields, tree
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.parser import Parser
from jaxenc.families import MODELS
from jaxenc.families.count import parameter_count, true_shape
from jaxenc.objectives.base import Objective
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import partition
from jaxenc.tasks import recipe as tasks
from jaxenc.tasks.tuning import FineTune
from jaxenc.training import memory
from jaxenc.training import state as states
from jaxenc.training import teacher as teachers
from jaxenc.training.phases import Phase
from jaxenc.training.prepare import device_memory
from jaxenc.training.run import Run
from jaxenc.training.state import Layout


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    parser.add_argument("--devices", type=int, default=0, help="devices of the mesh (default: this machine's)")
    compile_ = "leave out the memory of a step, which takes compiling it"
    parser.add_argument("--no-compile", dest="compile", action="store_false", help=compile_)
    parser.add_argument("--parameters", action="store_true", help="list every parameter with its axes and sharding")
    parser.add_argument("--fields", action="store_true", help="print every field with its value and its meaning, and nothing else")
    parser.add_examples(
        "jaxenc inspect --config bert/base --devices 8 --config.mesh.preset=fsdp",
        "jaxenc inspect --config tasks/text --fields",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the parameters by part, the phases with their FLOPs, the size of the state, and the memory of a step, which compiles it.
    Allocates nothing. Raises UserError, as a run does, for what does not fit together."""
    if args.fields and "task" in (data := cli_config.read(args.config)):
        tune = tasks.from_dict(data, f"--config {args.config}")
        print("\n".join(described(tasks.changed(tune, cli_config.parsed(tune, args.overrides, tasks.KINDS)))))
        return 0
    recipe, vocabulary = cli_config.with_vocabulary(cli_config.resolve(args.config, args.overrides), args.overrides)
    if args.fields:
        print("\n".join(described(recipe)))
        return 0
    # Without a teacher's folder the student alone is described.
    teacher = teachers.model_of(recipe.objective, MODELS) if recipe.objective.has_teacher and recipe.objective.teacher else None
    objectives = [recipe.build(vocabulary, phase, meshes.platform(jax.devices()[0]), teacher=teacher) for phase in recipe.plan]
    objective, mesh = objectives[0], _mesh(recipe, args.devices or jax.device_count())
    for phase in recipe.plan:
        partition.check_rows(phase.batch, recipe.train.microbatches, mesh)
    layout = states.layout(objective, recipe.optim, recipe.plan[0].batch, mesh, recipe.mesh.preset)
    shapes = layout.shapes.all_params
    lines = by_part(shapes, objective, recipe.model.vocab_size)
    if args.parameters:
        lines += listing(objective, layout, recipe.model.vocab_size)
    lines += by_phase(recipe, objectives)
    lines += sizes(layout, objective) + kept_whole(layout, recipe.mesh.preset)
    print("\n".join(lines), flush=True)
    if args.compile:
        for number, (one, phase) in enumerate(zip(objectives, recipe.plan, strict=True), 1):
            print(f"phase {number}: {_step(one, recipe, phase, layout)}", flush=True)
    return 0


def _mesh(recipe: Run, count: int) -> Mesh | AbstractMesh:
    """A mesh of `count` devices: of this machine's where it has as many."""
    if count > jax.device_count():
        return meshes.abstract(recipe.mesh, count)
    return meshes.make(recipe.mesh, jax.devices()[:count] if count < jax.device_count() else None)


def _step(objective: Objective, recipe: Run, phase: Phase, first: Layout) -> str:
    """The memory of a step and whether it fits. On stderr, that it is compiled. first: of the first phase."""
    if recipe.objective.has_teacher and not recipe.objective.teacher:
        return "the memory of a step is not planned: name the teacher with --config.objective.teacher=DIR"
    if isinstance(first.mesh, AbstractMesh):
        return f"the memory of a step is not planned: this machine has {jax.device_count()} of the {first.mesh.size} devices"
    print(f"compiling the step: {phase.batch:,} rows of {phase.length} tokens (--no-compile leaves it out)", file=sys.stderr, flush=True)
    layout = states.layout(objective, recipe.optim, phase.batch, first.mesh, recipe.mesh.preset)
    planned = memory.plan(objective, recipe, phase, layout)
    if isinstance(planned, str):
        return planned
    verdict = memory.verdict(planned, recipe, phase, layout.mesh, device_memory(layout.mesh))
    parts = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in dataclasses.asdict(planned).items() if size)
    return f"a step takes {planned.total / 1e6:,.1f} MB of each device ({parts}): {verdict}"


def described(recipe: Run | FineTune) -> list[str]:
    """One line for each field: path=value, in the form of an override, and its meaning."""
    given = [(f"{path}={_text(value)}", meaning) for path, value, meaning in fields.listing(recipe)]
    return [f"{setting:<36}  {meaning}" for setting, meaning in given]


def _text(value: Any) -> str:
    """A value of a field in the form of an override."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_text, value)) if isinstance(value, tuple) else str(value)


def by_part(shapes: dict[str, Any], objective: Objective, vocab_size: int) -> list[str]:
    """The number of parameters (without padding rows of the vocabulary) of each part, of all parts but the heads (the pooler counts as
    encoder), and in all but a teacher; where some parts are only needed in training, also of the others."""
    counts = {part: parameter_count({part: branch}, vocab_size, objective.vocabulary) for part, branch in shapes.items()}
    own = [part for part in counts if part not in objective.frozen]
    sums = {"without heads": [part for part in own if part == "pooler" or part not in objective.heads]}
    if set(objective.scaffold) & set(counts):
        sums["to keep"] = [part for part in counts if part not in objective.scaffold]
    sums["parameters"] = own
    totals = {name: sum(counts[part] for part in parts) for name, parts in sums.items()}
    return [f"{name:<16}{count:>14,}" for name, count in (counts | totals).items()]


def listing(objective: Objective, layout: Layout, vocab_size: int) -> list[str]:
    """One line for each parameter: path, shape without padding, logical axes and their sharding on the mesh."""
    axes, held = dict(tree.leaves(layout.names)), dict(tree.leaves(layout.shardings.all_params))
    shape = lambda path, leaf: true_shape(path, leaf.shape, vocab_size, objective.vocabulary)
    leaves = tree.leaves(layout.shapes.all_params)
    return [f"{path:<48} {shape(path, leaf)!s:<16} {axes[path]!s:<28} {held[path].spec}" for path, leaf in leaves]


def by_phase(recipe: Run, objectives: Sequence[Objective]) -> list[str]:
    """One line for each phase: steps, batch, length, schedule, model FLOPs of a step and of the phase."""
    lines = []
    for number, (phase, objective) in enumerate(zip(recipe.plan, objectives, strict=True), 1):
        flops = objective.flops(phase.length) * phase.batch
        rows, most = ("rows of up to", "at most ") if len(recipe.in_lengths(phase)) > 1 else ("rows of", "")
        lines.append(
            f"phase {number}: {phase.steps:,} steps of {phase.batch:,} {rows} {phase.length} tokens, learning rate {phase.lr:g}, "
            f"warm-up {phase.warmup:,}; {most}{flops / 1e12:,.3g} TFLOP a step, {flops * phase.steps:.2e} FLOP in all"
        )
    return lines


def sizes(layout: Layout, objective: Objective) -> list[str]:
    """Bytes of parameters, moments and carry, in all (the size of a checkpoint) and on each device of the mesh."""
    state, mesh = layout.shapes, layout.mesh
    total = {part: tree.nbytes(getattr(state, part)) for part in ("params", "frozen", "moments", "carry")}
    saved, held = tree.nbytes(state.without(objective.frozen)), memory.on_each_device(layout.abstract)
    axes = " x ".join(f"{axis} {size}" for axis, size in mesh.shape.items())
    return [
        "state: " + ", ".join(f"{part} {size / 1e6:,.1f} MB" for part, size in total.items()),
        f"a checkpoint: about {saved / 1e6:,.1f} MB",
        f"on each of {mesh.size} devices ({axes}): {held / 1e6:,.1f} MB of state",
    ]


def kept_whole(layout: Layout, preset: str) -> list[str]:
    """A line where parameters that the preset splits stay whole on every device; none where all are split."""
    shapes, size = layout.shapes.all_params, layout.mesh.shape["fsdp"]
    whole = partition.whole_over_fsdp(shapes, layout.names, layout.mesh, preset)
    count = f"{len(whole)} of {len(jax.tree.leaves(shapes))} parameters"
    return [f"whole on each device: {count}, {tree.nbytes(whole) / 1e6:,.1f} MB: fsdp {size} does not divide their axes"] if whole else []
