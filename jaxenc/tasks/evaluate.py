"""Evaluates a checkpoint, of pretraining or of fine-tuning: the implementation of `jaxenc evaluate` and `jaxenc.evaluate`."""

import dataclasses
import pathlib
import sys
import types
from collections.abc import Mapping
from typing import Any

from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.heads import BUILT_IN, Head
from jaxenc.processes import barriers
from jaxenc.storage import is_url
from jaxenc.tasks import TASKS, recipe
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.kept import kept, run_of, step_of
from jaxenc.tasks.prepare import open_saved
from jaxenc.tasks.row_files import MissingColumn
from jaxenc.tasks.task import Task
from jaxenc.tasks.tuning import FineTune
from jaxenc.training import held_out
from jaxenc.training.held_out import Evaluation
from jaxenc.training.override import override
from jaxenc.training.run import of_checkpoint


def evaluate(
    workdir: str | pathlib.Path,
    step: int = 0,
    data: str | pathlib.Path = "",
    batch: int = 0,
    mesh: str = "",
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
    predictions: bool = False,
    values: Mapping[str, Any] = types.MappingProxyType({}),
    seed: int | None = None,
    tasks: Mapping[str, type[Task]] = TASKS,
) -> Evaluation:
    """Evaluates a checkpoint of `workdir`: one of pretraining as `training.held_out.evaluate`, one of fine-tuning with the scores of its
    task on the dev set.

    workdir: after fine-tuning, the folder of all seeds, of which the best one is taken, or the run directory of one seed. step: 0 for the
    checkpoint that fine-tuning kept. data: another labelled file instead of the dev set. seed: which one of several that
    were fine-tuned. tasks: as in `inference.load.load`. Everything else, and what it raises, is as in `held_out.evaluate`; UserError also
    for examples that do not fit and if a fine-tuning had no dev set.
    """
    chosen, why = barriers.from_primary("kept checkpoint", lambda: list(map(str, kept(workdir, seed))))
    folder = chosen if is_url(workdir) else pathlib.Path(chosen)
    # Another step is one of the same seed.
    run_dir = run_of(folder) if step else folder
    if not (held_out.find_checkpoint(run_dir, step, check=False) / recipe.RECORD).is_file():
        return held_out.evaluate(workdir, step, data, batch, mesh, heads, models, predictions, values)
    path = held_out.find_checkpoint(run_dir, step)
    if (where := step_of(folder, int(path.name))) != workdir and barriers.is_primary():
        print(f"evaluate: {where}{f', {why}' if why else ''}", file=sys.stderr, flush=True)
    tune = recipe.of_checkpoint(path, tasks)
    if "eval.rows" in values:
        fix = "leave it out, or name a shorter file with --data"
        raise UserError("a task is evaluated on all of its examples", "config.eval.rows", fix)
    run = override(held_out.for_evaluation(of_checkpoint(path, models), values, "", batch, mesh), values, models)
    try:
        tuning = open_saved(_on(tune, data, path), run, path, heads, models)
    except MissingColumn as error:  # the fine-tuning has fixed which columns are read
        raise error.settled() from error
    if barriers.is_primary():
        print(*tuning.notes, "preparing the model", sep="\n", file=sys.stderr, flush=True)
    return held_out.of_job(tuning.job(run.train.seed, path), path, predictions)


def _on(tune: FineTune, data: str | pathlib.Path, path: pathlib.Path) -> FineTune:
    """The settings with the file `data` as the dev set; unchanged if `data` is ''."""
    if data:
        return dataclasses.replace(tune, data=FilesConfig(dev=str(data), encoding=tune.data.encoding, ragged=tune.data.ragged))
    if not tune.data.dev:
        raise UserError("was fine-tuned without a dev set", path, "name a labelled file with --data FILE")
    return tune
