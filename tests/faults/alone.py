"""Nano runs of several objectives, each in one process of eight CPU devices, to be killed and started again, and what one leaves."""

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxenc.training.run import Run
from tests.faults.gang import ROOT
from tests.faults.recipe import Recipe
from tests.group import Process
from tests.training import test_loop
from tests.training.conftest import make_data

# {name of a file in recipes/: its recipe}
RECIPES: Mapping[str, Recipe] = {
    file.stem: importlib.import_module(f"tests.faults.recipes.{file.stem}").RECIPE
    for file in sorted((Path(__file__).parent / "recipes").glob("*.py"))
}
STEPS = 60
EVERY = 10


@dataclasses.dataclass(frozen=True)
class Nano:
    """A run and its recipe as a file."""

    run: Run
    config: Path

    def start(self, workdir: Path, accident: str = "nothing", stage: str = "-", count: int = 1, **environment: str) -> Process:
        """One process of the run, as `tests/faults/child.py` says; its notes are beside the work directory."""
        script = (ROOT / "tests" / "faults" / "child.py", notes_of(workdir), accident, stage, count)
        return Process(
            [sys.executable, *map(str, script), "pretrain", "--config", str(self.config), "--workdir", str(workdir)],
            stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip

    def finish(self, workdir: Path, accident: str = "nothing", stage: str = "-", count: int = 1, limit: float = 600) -> tuple[int, str]:
        """(exit code, what it said) of a process that nobody else disturbs."""
        with self.start(workdir, accident, stage, count) as process:
            said = process.communicate(timeout=limit)[1]
        return process.returncode, said


def notes_of(workdir: Path) -> Path:
    """The file in which the processes of a run note each stage of each save."""
    return workdir.with_name(f"{workdir.name}.notes")


def newest(workdir: Path) -> int:
    """The newest step that has its own name, 0 for none."""
    names = (path.name for path in (workdir / "checkpoints").glob("*")) if workdir.exists() else ()
    return max((int(name) for name in names if re.fullmatch(r"\d+", name)), default=0)


def saving(workdir: Path) -> list[int]:
    """The steps that have a temporary name: they are being saved, or were when their process died."""
    return [int(path.name.split(".")[1]) for path in workdir.glob("checkpoints/.*.tmp-save")]


def logged(workdir: Path) -> list[dict]:
    """The rows of metrics.jsonl that are whole, if any."""
    path = workdir / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []


def prepare(kind: str, steps: int, folder: Path) -> None:
    """Puts into `folder` what `nano` needs there."""
    RECIPES[kind].prepare(make_data(folder / "made", 1, RECIPES[kind].tokenizer))
    test_loop.write_recipe(nano(kind, steps, folder).run, folder / "recipe.json")


def nano(kind: str, steps: int, folder: Path) -> Nano:
    """A run of `steps` steps with a checkpoint every EVERY and an evaluation every 2 EVERY; three checkpoints stay."""
    run = RECIPES[kind].run(folder / "made" / "data")
    run = dataclasses.replace(
        run,
        train=dataclasses.replace(run.train, steps=steps),
        checkpoint=dataclasses.replace(run.checkpoint, every=EVERY, keep=3),
        eval=dataclasses.replace(run.eval, every=2 * EVERY),
    )
    return Nano(run, folder / "recipe.json")
