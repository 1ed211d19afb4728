"""Refuses to continue a seed in a work directory that was fine-tuned with other settings, on other examples or from another model, and
processes that were started with different fine-tunings."""

import pathlib
from collections.abc import Sequence
from typing import Any

from jaxenc import config
from jaxenc.checkpoint import restore
from jaxenc.checkpoint.workdir import Workdir
from jaxenc.data import tokenizers
from jaxenc.errors import UserError
from jaxenc.processes import barriers
from jaxenc.tasks import TASKS, recipe
from jaxenc.tasks.prepare import START, Tuning
from jaxenc.training import refusals
from jaxenc.training.prepare import MANIFEST, TOKENIZER

# The examples are compared, not the files that hold them; and each seed has a directory of its own.
MAY_CHANGE = (*refusals.MAY_CHANGE, "data.*", "train.seed", "published")
ANOTHER = "choose another --workdir"


def refuse_other_tuning(tuning: Tuning, directories: Sequence[pathlib.Path], work: Workdir) -> None:
    """Raises UserError where the newest checkpoint of one of the seeds' directories was written with other settings, other training or dev
    examples or another model to start from. The test examples may change: they are only answered. work: the work directory."""
    for directory in directories:
        if (newest := work.newest(directory)) is not None:
            _refuse(tuning, directory, newest)


def _refuse(tuning: Tuning, directory: pathlib.Path, step_dir: pathlib.Path) -> None:
    known = {**TASKS, tuning.task.kind: type(tuning.task)}
    saved, manifest, ours = recipe.of_checkpoint(step_dir, known), restore.read_json(step_dir, MANIFEST), tuning.facts
    if saved is None:
        return
    if found := refusals.refused(config.to_dict(saved), config.to_dict(tuning.tune), MAY_CHANGE):
        raise UserError(refusals.both_values(found), directory, f"set them back, or {ANOTHER}")
    if manifest.get("fingerprint") != ours["fingerprint"]:
        raise _other_rows(tuning, directory, step_dir)
    # Checkpoints written before this was recorded have no start.
    start: dict[str, Any] = manifest.get(START, ours[START])
    if start["checksums"] != ours[START]["checksums"]:
        what = f"it was fine-tuned from {start['path']}, and this run starts from another model, {ours[START]['path']}"
        raise UserError(what, directory, f"start from that model, or {ANOTHER}")


def _other_rows(tuning: Tuning, directory: pathlib.Path, step_dir: pathlib.Path) -> UserError:
    """The error for rows that are not those of the checkpoint. The checkpoint's tokenizer tells whether only the side of CLS differs: an
    older jaxenc framed texts as the vocabulary did, this one frames them as the family does."""
    last = tuning.tokenizer.ends_in_cls
    folder = step_dir / TOKENIZER
    if folder.is_dir() and tokenizers.load(folder).ends_in_cls != last:
        was, now = ("first", "last") if last else ("last", "first")
        what = f"it was begun by a jaxenc that framed texts with CLS {was}, and this one has CLS {now}"
        return UserError(what, directory, ANOTHER)
    what = "it was begun with other training or dev examples, or by a jaxenc that framed texts otherwise"
    return UserError(what, directory, f"name the same files, with the same rows, or {ANOTHER}")


def refuse_other_process(tuning: Tuning, seeds: int) -> None:
    """Raises ErrorOfAll, which names each difference with both values, where a process was started with another task, number of seeds,
    examples or model than process 0. The paths of `data` may differ. The run of each seed compares the rest (`training.refusals`): it knows
    neither the task nor the test examples."""
    rows = {name: split.fingerprint for name, split in tuning.splits.items()}
    tune = config.to_dict(tuning.tune)
    facts = {"--seeds": seeds, "task": tune["task"], "train": tune["train"], "rows": rows, "--init-from": tuning.facts[START]["checksums"]}
    barriers.must_be_equal("fine-tuning", facts, "start every process with the same command and files")
