"""Records the baseline: what jaxenc computes now, for the tests of this folder to compare with.

    .venv/bin/python -m tests.baseline.make               everything: data, run directories, the steps that follow, first steps, counts
    .venv/bin/python -m tests.baseline.make next          from the committed run directories: the steps that follow
    .venv/bin/python -m tests.baseline.make steps         from the committed configs and data: trees, corrupted rows, first steps
    .venv/bin/python -m tests.baseline.make counts        from the same: counts of operations, of this jax version line
    .venv-3.12/bin/python -m tests.baseline.make counts   the same for the other version line

A change on purpose: run the part that the failing test names, read the diff, and say in the commit why it changed. A new layout of the
package changes none of these files; adapt `inside.py` alone. It runs with the tests' own flags (tests/conftest.py).
"""

# ruff: noqa: I001 - tests.conftest sets the flags before jax is imported
import contextlib
import dataclasses
import datetime
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

from tests import conftest  # noqa: F401

import jax
from sentencepiece import SentencePieceTrainer

from jaxenc.cli.recipe import resolve
from jaxenc.training.run import Run
from tests.baseline import counts, inside, runs, states
from tests.baseline.recipes import RECIPES, STEPS, Recipe
from tests.faults import same
from tests.training import test_loop
from tests.training.conftest import make_data


def resolved(name: str, recipe: Recipe) -> Run:
    """The run of a recipe, on data in a folder named after the run that owns it."""
    run = resolve(recipe.recipe, [f"--config.{item}" for item in recipe.overrides])
    return dataclasses.replace(run, data=dataclasses.replace(run.data, path=f"{runs.BORROWED.get(name, name)}/data"))


def make_data_of(name: str, recipe: Recipe) -> Path:
    """The run's own data. A unigram model is trained without the table of NFKC, which has 240 kB and would be committed four times."""
    without = functools.partial(SentencePieceTrainer.train, normalization_rule_name="identity")
    with mock.patch.object(SentencePieceTrainer, "train", without):
        return make_data(Path(f"{name}-text"), recipe.seed, recipe.tokenizer)


def stop(run: Run, recipe: Recipe, workdir: Path) -> None:
    """Trains to the recipe's stop in a process of one device: its checkpoint has an eighth of the pieces, and half the bytes, of one that
    eight devices write, and the devices may change on a resume."""
    written = test_loop.write_recipe(run, Path("recipe.json"))
    command = [sys.executable, "-m", "tests.baseline.stopped", str(written), str(recipe.stop), str(workdir)]
    environment = {**os.environ, "XLA_FLAGS": "--xla_backend_optimization_level=0", "PYTHONPATH": str(runs.HERE.parents[1])}
    subprocess.run(command, env=environment, check=True)


def make_run(name: str, recipe: Recipe) -> None:
    """The data, the run directory as a stop leaves it, and in `next/` what its last steps wrote. In the current folder, which is empty, so
    that no path of this machine is committed."""
    target = runs.RUNS / name
    shutil.rmtree(target, ignore_errors=True)
    made = make_data_of(name, recipe)
    shutil.copytree(made, target / "data")
    shutil.copytree(made, Path(name) / "data")
    run = resolved(name, recipe)
    assert run.plan[-1].end == recipe.stop + STEPS
    stop(run, recipe, Path(name) / "run")
    shutil.copytree(Path(name) / "run", target / "run")
    make_next(name)


def make_next(name: str) -> None:
    """What the last steps of a committed run directory write."""
    target, end = runs.RUNS / name, runs.stopped_at(name) + STEPS
    workdir = runs.resume(name, Path("resumed"))
    (target / "next").mkdir(exist_ok=True)
    lines = [f"{json.dumps({'step': key[0], 'split': key[1], **row})}\n" for key, row in same.rows(workdir).items()]
    (target / "next" / "metrics.jsonl").write_text("".join(lines))
    shutil.copy(workdir / "examples.log", target / "next" / "examples.log")
    runs.write(target / "next" / "state.json", states.summary(same.state(workdir / "checkpoints" / str(end))))


def make_step(name: str, folder: Path) -> None:
    """The parameter tree, corrupted rows and first step of one run."""
    step = RECIPES[name].stop
    subject = inside.subject(runs.config_of(name), runs.data_of(name, folder), step)
    first = {"first_step": subject.first_step(subject.compiled()[1])} if name in runs.COMPILED else {}
    rows = subject.corrupted((subject.phase.start, step, step + 1))
    runs.write(runs.STEPS / f"{name}.json", {"step": step, **first, "corrupted": rows, "tree": subject.tree()})


def make_counts(names: list[str], folder: Path) -> None:
    """counts/<version line>.json of those of the four runs that are named; the others keep theirs."""
    path = runs.HERE / "counts" / f"{counts.line_of(jax.__version__)}.json"
    found = runs.read(path) if path.exists() else {}
    for name in (name for name in names if name in runs.RESUMED):
        data = runs.data_of(name, folder)
        for preset in counts.PRESETS:
            subject = inside.subject(runs.config_of(name), data, runs.stopped_at(name), preset)
            text, compiled = subject.compiled()
            found[f"{name} {preset}"] = {"stablehlo": counts.lowered(text), "hlo": counts.compiled(compiled.step.as_text())}
    runs.write(path, found)


def main(parts: list[str]) -> None:
    """Makes the named parts of the named runs, or all, in a temporary folder that then goes away."""
    names = [name for name in RECIPES if name in parts] or list(RECIPES)
    asked = lambda part: part in parts or not set(parts) & {"runs", "next", "steps", "counts"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if asked("runs"):
            for name in names:
                if RECIPES[name].stop:
                    make_run(name, RECIPES[name])
                else:
                    runs.STEPS.mkdir(exist_ok=True)
                    test_loop.write_recipe(resolved(name, RECIPES[name]), runs.config_of(name))
            runs.write(runs.FACTS, {"date": str(datetime.date.today()), "python": platform.python_version(), **states.identity()})
        if "next" in parts:
            for name in (name for name in names if name in runs.RESUMED):
                make_next(name)
        if asked("steps"):
            for name in names:
                make_step(name, Path(folder) / "steps")
        if asked("counts"):
            make_counts(names, Path(folder) / "counts")


if __name__ == "__main__":
    main(sys.argv[1:])
