"""What the peer of `jaxenc bench finetune` is given, in files: the first parameters and the batches of every seed, and the optimizer."""

import collections
import dataclasses
import itertools
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxenc import tree
from jaxenc.checkpoint.restore import Start
from jaxenc.convert import hf
from jaxenc.data.batch import Batch
from jaxenc.data.pipeline import Batches
from jaxenc.errors import UserError
from jaxenc.families.foreign import Export
from jaxenc.heads import Head
from jaxenc.inference.model import Model
from jaxenc.optim import masks
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.optim.schedules import learning_rate
from jaxenc.tasks.prepare import Tuning
from jaxenc.training.begin import begin, fresh_heads, renamed_heads
from jaxenc.training.run import Run, of_checkpoint
from jaxenc.tree import Tree

LENGTHS = "lengths"
TEXT = ("tokens", "types", "segments")
# The fields of `optim` that AdamW of torch has too, or that `groups` and the rates of the steps hold.
MAPPED = (
    *("name", "lr", "warmup", "schedule", "origin", "beta1", "beta2", "epsilon", "bias_correction", "epsilon_added"),
    *("weight_decay", "clip", "decay_exclude", "freeze", "rates"),
)


def write(tuning: Tuning, seeds: range, folder: Path) -> dict[str, Any]:
    """Writes the dev rows and, for each seed, its batches and its model, in float32, to files in `folder`. Returns the JSON value that
    `bench.peer_tune` reads from its stdin.

    Raises UserError for a task without a dev set or without one head on texts, for a model that transformers does not have, and as `adamw`.
    """
    run, label = tuning.run, head(tuning).labels[0].name
    numbers, phase = adamw(run), run.plan[0]
    if "dev" not in tuning.splits:
        raise UserError("data.dev is not set", fix="name the file of the examples that both sides are scored on")
    asked = []
    for seed in seeds:
        paths = {name: str(folder / f"seed_{seed}" / name) for name in ("model", "train.npz", "found.npz")}
        job = tuning.job(seed, folder)
        model = Model(job.run, first_params(tuning, seed), tuning.tokenizer)
        hf.save(paths["model"], model)
        np.savez(paths["train.npz"], **stacked(job.batches("train", phase, phase.batch), phase.steps, (*TEXT, label)))
        asked.append({"seed": seed, **paths})
    held = job.batches("held_out", phase, run.eval.batch)
    np.savez(folder / "dev.npz", **stacked(held, len(held), TEXT))
    optim = {"adamw": numbers, "groups": groups(run.optim, model.params, _export(model))}
    return {**optim, "seeds": asked, "dev": str(folder / "dev.npz"), "label": label, "precision": run.train.precision, "batch": phase.batch}


def head(tuning: Tuning) -> Head:
    """The head on texts that a task trains. Raises UserError for a task with another head or with several."""
    objective = tuning.job(tuning.tune.train.seed, tuning.start).objective(tuning.run.plan[0])
    trained = [one.head for one in objective.trained.values()]
    if len(trained) != 1 or trained[0].role != "text" or trained[0].chooses:
        names = " and ".join(one.name for one in trained)
        raise UserError(f"the task trains the head {names}", "--peer", "compare a task with one label or score for each text")
    return trained[0]


def first_params(tuning: Tuning, seed: int) -> Tree:
    """The parameters that the run of a seed starts from, float32 NumPy arrays: those of `tuning.start` and the new heads."""
    job = tuning.job(seed, tuning.start)
    plan, objective = job.run.plan, job.objective(job.run.plan[0])
    start, saved = Start("init", tuning.start, 0), of_checkpoint(tuning.start).objective.classes
    fresh = (*fresh_heads(start, objective), *renamed_heads(start, objective, job.run.objective.classes, saved))
    with jax.set_mesh(job.mesh):
        return jax.device_get(begin(start, plan, seed, job.layout, objective, fresh).all_params)


def stacked(batches: Batches, steps: int, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The first `steps` batches: `lengths` i32 [steps], the row length of each, and for every length the arrays `NAME.LENGTH`, [batches of
    this length, rows, ...], in order."""
    rows = [batches.batch_at(step) for step in range(steps)]
    by_length: dict[int, list[Batch]] = collections.defaultdict(list)
    for batch in rows:
        by_length[batch["segments"].shape[-1]].append(batch)
    arrays = {f"{name}.{length}": np.stack([batch[name] for batch in some]) for length, some in by_length.items() for name in names}
    return {LENGTHS: np.array([batch["segments"].shape[-1] for batch in rows], np.int32), **arrays}


def adamw(run: Run) -> dict[str, Any]:
    """The numbers of `optim` with the learning rate of every step. Raises UserError for an optimizer that torch's AdamW cannot be."""
    optim, phase = run.optim, run.plan[0]
    if optim.name != "adamw":
        raise UserError(f"optim.name is {optim.name}", "--peer", "the peer has adamw")
    unset = OptimConfig()
    for field in dataclasses.fields(optim):
        path = f"optim.{field.name}"
        if field.name not in MAPPED and path not in optim.unused and getattr(optim, field.name) != getattr(unset, field.name):
            raise UserError(f"{path} is {getattr(optim, field.name)}, which the peer does not have", "--peer", "leave it at its default")
    rate = learning_rate(optim.schedule, optim.origin, phase.lr, phase.warmup, phase.schedule_steps, optim.slanted_ratio)
    rates = np.asarray(rate(np.arange(phase.start, phase.end) - phase.schedule_start), np.float64).tolist()
    names = ("beta1", "beta2", "epsilon", "bias_correction", "epsilon_added", "weight_decay", "clip")
    return {**{name: getattr(optim, name) for name in names}, "rates": rates}


def groups(optim: OptimConfig, params: Tree, exported: Export) -> list[dict[str, Any]]:
    """The trained parameters by weight decay and by factor of the learning rate: `names` of them in transformers, `decays`, `factor`. Those
    that are in no group are not trained."""
    decays = dict(tree.leaves(masks.decay_mask(optim.decay_exclude, params)))
    factors = dict(tree.leaves(masks.factors(optim.rates, params)))
    trained = [path for path, _ in tree.leaves(masks.trained(optim.freeze, params))]
    theirs = {entry.ours: entry.theirs for entry in exported.entries}
    kind = lambda path: (decays[path], factors[path])
    found = itertools.groupby(sorted(trained, key=kind), kind)
    return [{"names": sorted({theirs[path] for path in paths}), "decays": decay, "factor": factor} for (decay, factor), paths in found]


def _export(model: Model) -> Export:
    parts = hf.models(model)
    if len(parts) > 1:
        raise UserError("the model is several networks in transformers", "--peer", "compare a model of one network")
    return hf.export(next(iter(parts.values())))
