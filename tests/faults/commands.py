"""One of several processes that meet once and then run command after command: `jaxenc pretrain` with the arguments after FOLDER, and on
what it made `evaluate`, `finetune` with two seeds, and `evaluate` of the better one.

FOLDER gets masks.npz, the corrupted examples of the first steps of the pretraining in slot order; tuned/ and dev.npz of the other commands;
and of each process RANK.out, what it printed, and RANK.touched, the paths that it made, renamed or removed.
"""

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

from jaxenc import rng
from jaxenc.cli import main
from jaxenc.processes import barriers, cluster, connection
from jaxenc.sharding import partition
from jaxenc.training import prepare
from jaxenc.training.read import reader
from jaxenc.training.run import of_checkpoint
from jaxenc.training.step import corrupt, corruption_keys, fields
from tests.faults.caching import keep
from tests.training.conftest import SYLLABLES

# Of fine-tuning, and how many of the pretraining's steps are in masks.npz.
TUNED, MASKED = 2, 3
CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate")


def make_task(folder: Path) -> None:
    """SST-2 of GLUE with the words of `make_data`, of which the first gives the label: 64, 103 and 21 examples."""
    random = np.random.default_rng(0)
    folder.mkdir()
    for name, rows in (("train", 64), ("dev", 103), ("test", 21)):
        words = [[random.choice(SYLLABLES) + random.choice(SYLLABLES) for _ in range(random.integers(1, 9))] for _ in range(rows)]
        texts = [(" ".join(one), SYLLABLES.index(one[0][:2]) % 2) for one in words]
        lines = [f"{i}\t{text}" for i, (text, _) in enumerate(texts)] if name == "test" else [f"{text}\t{label}" for text, label in texts]
        header = "index\tsentence" if name == "test" else "sentence\tlabel"
        (folder / f"{name}.tsv").write_text("\n".join([header, *lines]) + "\n")


def tuning(folder: Path, model: Path, task: Path, preset: str) -> list[str]:
    """`jaxenc finetune` of two seeds: 103 dev examples in batches of 32."""
    fields = {
        "data.path": task, "published": "", "train.length": 20, "train.batch": 16, "train.steps": TUNED, "optim.lr": 3e-3, "eval.batch": 32,
        "log.every": 1, "log.examples": "true", "log.tensorboard": "false", "mesh.preset": preset,
    }  # fmt: skip
    command = ["finetune", "--config", "tasks/glue:sst2", "--init-from", model, "--workdir", folder / "tuned", "--seeds", 2]
    return [*map(str, command), *(f"--config.{name}={value}" for name, value in fields.items())]


def masks(workdir: Path) -> dict[str, np.ndarray]:
    """{STEP-NAME: [batch, ...]} of the examples of the first MASKED steps of a run, on its mesh."""
    run = of_checkpoint(max((workdir / "checkpoints").iterdir(), key=lambda path: int(path.name)))
    job, phase = prepare.prepare(run, workdir), run.plan[0]
    objective = job.objective(phase)
    batch_at, _ = reader(job, "train", phase, phase.batch, objective)

    def example(batch: Any, step: Any) -> Any:
        keys = rng.training(run.train.seed, step, phase.batch)
        return corrupt(objective, corruption_keys(run.train, np.int32(run.train.seed), keys, batch), batch, job.mesh)

    found = {}
    with jax.set_mesh(job.mesh):
        compiled = jax.jit(example, out_shardings=partition.replicated(job.mesh))
        for step in range(MASKED):
            batch = batch_at(step)
            rows = partition.place({name: batch[name] for name in fields(objective, run.train)}, job.mesh)
            found |= {f"{step}-{name}": array for name, array in jax.device_get(compiled(rows, np.int32(step))).items()}
    return found


def noted(path: Path, folder: Path) -> None:
    """From now on each change that Python makes below `folder` is a line of `path`."""

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event not in CHANGES or not isinstance(given[0], str | os.PathLike) or given[0] == str(path):
            return
        writes = event != "open" or given[2] & (os.O_WRONLY | os.O_RDWR)
        if writes and folder in Path(os.path.abspath(given[0])).parents:
            with open(path, "a") as file:
                file.write(f"{event} {os.path.relpath(given[0], folder)}\n")

    path.touch()
    sys.addaudithook(hear)


def run(folder: Path, pretrain: list[str]) -> None:
    """The commands, and masks.npz. pretrain: the arguments of `jaxenc pretrain`, and --task with the folder of `make_task`, without which
    nothing is fine-tuned."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("workdir", "task", "config.mesh.preset"):
        parser.add_argument(f"--{name}", default="")
    given, left = parser.parse_known_args(pretrain)
    workdir, preset = Path(given.workdir), vars(given)["config.mesh.preset"]
    mesh = [f"--config.mesh.preset={preset}"]
    commands = [["pretrain", *left, "--workdir", str(workdir), *mesh], ["evaluate", "--workdir", str(workdir), *mesh]]
    if given.task:
        better = ["evaluate", "--workdir", str(folder / "tuned"), "--batch", "24", "--predictions", str(folder / "dev.npz"), *mesh]
        commands += [tuning(folder, workdir, Path(given.task), preset), better]
    for command in commands:
        if code := main.main(command):
            raise SystemExit(f"{command[0]}: exit code {code}")
    found = masks(workdir)
    if barriers.is_primary():
        np.savez(folder / "masks.npz", **found)


def told(error: BaseException) -> int:
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return main.report_error(error, True) or 1


if __name__ == "__main__":
    keep()
    folder, rank = Path(sys.argv[1]), os.environ["JAXENC_PROCESS"]
    folder.mkdir(exist_ok=True)
    noted(folder / f"{rank}.touched", folder.parent)
    with (
        open(folder / f"{rank}.out", "w") as out,
        connection.joined(cluster.from_environment(os.environ), told),
        mock.patch.object(connection, "joined", lambda *given: contextlib.nullcontext()),
        contextlib.redirect_stdout(out),
    ):
        run(folder, sys.argv[2:])
