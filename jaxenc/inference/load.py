"""Loads a trained model: `jaxenc.load(DIR)`."""

import pathlib
from collections.abc import Mapping

from jaxenc.checkpoint import restore
from jaxenc.data import tokenizers
from jaxenc.data.folders import must_be_named
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.heads import BUILT_IN, Head
from jaxenc.inference.model import Model
from jaxenc.inference.network import objective_of
from jaxenc.progress import Bars
from jaxenc.storage import is_url
from jaxenc.tasks import TASKS, recipe
from jaxenc.tasks.framing import as_tuned
from jaxenc.tasks.kept import kept, step_of
from jaxenc.tasks.task import Task
from jaxenc.training.run import of_checkpoint
from jaxenc.training.state import parameters


def load(
    path: str | pathlib.Path,
    step: int | None = None,
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
    seed: int | None = None,
    tasks: Mapping[str, type[Task]] = TASKS,
) -> Model:
    """Loads the model of a run directory (its newest checkpoint that verifies, or `step`), of one checkpoint's folder, or of a folder of
    `jaxenc finetune`, on one device. path: that folder, or its URL: the files that are needed are then copied to this machine.

    heads, models, tasks: those that its config may name: `jaxenc.heads.with_built_in(HEAD)` for a model with your own head,
    `jaxenc.families.with_built_in(CONFIG)` for your own model, `jaxenc.tasks.with_built_in(TASK)` for your own task. seed: which of several
    fine-tuned seeds, None for the best one on the dev set; its checkpoint is the one that fine-tuning kept (`tasks.kept.kept`). It works
    for checkpoints of any mesh. Raises UserError when there is no checkpoint, when it is damaged, and when it names a head, a model or a
    task that is not among these.
    """
    folder: str | pathlib.Path = path if is_url(path) else must_be_named(path, "the model")
    if step is None or seed is not None:
        folder, _ = kept(folder, seed)
    if step is not None:
        folder = step_of(folder, step)
    with Bars().shown(f"reading {path}"):
        return _loaded(restore.find(folder, True, "the model"), heads, models, tasks)


def _loaded(where: pathlib.Path, heads: Mapping[str, Head], models: Models, tasks: Mapping[str, type[Task]]) -> Model:
    """The model of one checkpoint's folder."""
    config = of_checkpoint(where, models)
    tokenizer = tokenizers.load(where / "tokenizer") if (where / "tokenizer").is_dir() else None
    if tokenizer is not None and tokenizer.vocabulary.size > config.model.pieces:
        sizes = f"{tokenizer.vocabulary.size:,} pieces and the model {config.model.pieces:,} rows for them"
        raise UserError(f"its tokenizer has {sizes}", where, "use the model's own tokenizer")
    tune = recipe.of_checkpoint(where, tasks)
    if tokenizer is not None:
        tokenizer = as_tuned(tokenizer, config.model, where) if tune else tokenizer.framed_as(config.model.row_frame)
    shapes, _ = parameters(objective_of(config, tokenizer, heads))
    return Model(config, restore.restore_params(where, shapes), tokenizer, heads, tune)
