"""`jaxenc inspect`: parameters, phases and memory of a config, without running it."""

import argparse
import math
from typing import Any

import jax

from jaxenc import fields, tree
from jaxenc.cli import recipe as cli_config
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families import MODELS
from jaxenc.families.contract import ModelConfig
from jaxenc.families.count import parameter_count, true_shape
from jaxenc.objectives.base import Objective
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import rules
from jaxenc.training import teacher as teachers
from jaxenc.training.run import Run
from jaxenc.training.state import layout, parameters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    parser.add_argument("--devices", type=int, default=0, help="devices of the mesh (default: this machine's)")
    parser.add_argument("--parameters", action="store_true", help="list every parameter with its axes and sharding")
    parser.add_argument("--fields", action="store_true", help="print every field with its value and its meaning, and nothing else")


def run(args: argparse.Namespace) -> int:
    """Prints the parameters by part, the phases with their FLOPs and the size of the state; compiles and allocates nothing."""
    recipe, vocabulary = cli_config.with_vocabulary(cli_config.resolve(args.config, args.overrides), args.overrides)
    if args.fields:
        print("\n".join(described(recipe)))
        return 0
    # Without a teacher's folder the student alone is described.
    teacher = teachers.model_of(recipe.objective, MODELS) if recipe.objective.has_teacher and recipe.objective.teacher else None
    objective = recipe.build(vocabulary, recipe.plan[0], meshes.platform(jax.devices()[0]), teacher=teacher)
    shapes, names = parameters(objective)
    lines = by_part(shapes, objective, vocabulary.size)
    if args.parameters:
        lines += listing(shapes, names, objective, recipe.mesh.preset, vocabulary.size)
    lines += by_phase(recipe, vocabulary, teacher)
    lines += sizes(recipe, objective, shapes, names, args.devices or jax.device_count())
    print("\n".join(lines))
    return 0


def described(recipe: Run) -> list[str]:
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


def listing(shapes: dict[str, Any], names: dict[str, Any], objective: Objective, preset: str, vocab_size: int) -> list[str]:
    """One line for each parameter: path, shape without padding, logical axes and their sharding under the preset."""
    axes = dict(tree.leaves(names))
    shape = lambda path, leaf: true_shape(path, leaf.shape, vocab_size, objective.vocabulary)
    return [
        f"{path:<48} {shape(path, leaf)!s:<16} {axes[path]!s:<28} {rules.spec(axes[path], preset)}" for path, leaf in tree.leaves(shapes)
    ]


def by_phase(recipe: Run, vocabulary: Vocabulary, teacher: ModelConfig | None) -> list[str]:
    """One line for each phase: steps, batch, length, schedule, model FLOPs of a step and of the phase."""
    lines = []
    for number, phase in enumerate(recipe.plan, 1):
        objective = recipe.build(vocabulary, phase, meshes.platform(jax.devices()[0]), teacher=teacher)
        flops = objective.flops(phase.length) * phase.batch
        rows, most = ("rows of up to", "at most ") if len(recipe.in_lengths(phase)) > 1 else ("rows of", "")
        lines.append(
            f"phase {number}: {phase.steps:,} steps of {phase.batch:,} {rows} {phase.length} tokens, learning rate {phase.lr:g}, "
            f"warm-up {phase.warmup:,}; {most}{flops / 1e12:,.3g} TFLOP a step, {flops * phase.steps:.2e} FLOP in all"
        )
    return lines


def sizes(recipe: Run, objective: Any, shapes: dict[str, Any], names: dict[str, Any], devices: int) -> list[str]:
    """Bytes of parameters, moments and carry, in all (the size of a checkpoint) and on each of `devices` devices."""
    one = meshes.make(meshes.MeshConfig(), jax.devices()[:1])
    state = layout(objective, recipe.optim, recipe.plan[0].batch, one, "dp").shapes
    total = {part: tree.nbytes(getattr(state, part)) for part in ("params", "frozen", "moments", "carry")}
    saved = tree.nbytes(state.without(objective.frozen))
    mesh = dict(zip(rules.AXES, meshes.sizes(recipe.mesh, devices), strict=True))
    axes = dict(tree.leaves(names))
    split = lambda path: math.prod(mesh[axis] for name in axes[path] for axis in rules.mesh_axes(name, recipe.mesh.preset))
    here = sum(tree.nbytes(leaf) / split(path) for path, leaf in tree.leaves(shapes))
    share = here / (total["params"] + total["frozen"])
    per_device = here + total["moments"] * share + total["carry"] / (mesh["data"] * mesh["fsdp"])
    return [
        "state: " + ", ".join(f"{part} {size / 1e6:,.1f} MB" for part, size in total.items()),
        f"a checkpoint: about {saved / 1e6:,.1f} MB",
        f"on each of {devices} devices ({' x '.join(f'{axis} {size}' for axis, size in mesh.items())}): "
        f"{per_device / 1e6:,.1f} MB of state",
    ]
