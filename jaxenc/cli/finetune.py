"""`jaxenc finetune`: a pretrained model on a labelled task, with one or several seeds."""

import argparse
import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc.checkpoint import restore
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import PREEMPTED, report_error
from jaxenc.cli.parser import Parser
from jaxenc.cli.pretrain import add_profile, show_profile
from jaxenc.errors import UserError
from jaxenc.processes import barriers, cluster, connection
from jaxenc.storage import below
from jaxenc.tasks import TASKS, recipe
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.results import SEEDS, quoted, table
from jaxenc.tasks.tuning import FineTune
from jaxenc.training import profile
from jaxenc.training.run import of_checkpoint

EXAMPLES = (
    """jaxenc finetune --config tasks/text --text review --label stars
--config.data.train=train.tsv --config.data.dev=dev.tsv
--init-from runs/first --workdir runs/mine""",
    """jaxenc finetune --config tasks/glue:sst2 --config.data.path=GLUE/SST-2
--init-from runs/first --workdir runs/sst2 --seeds 5""",
)


def add_arguments(parser: Parser) -> None:
    what = "a task such as tasks/text or tasks/glue:sst2, your own FILE.py, or a task.json; --config.FIELD=VALUE sets a field"
    parser.add_argument("--config", required=True, metavar="TASK", help=what)
    model = "the pretrained model: a run directory or one of its checkpoints, or its URL (gs://...)"
    parser.add_argument("--init-from", required=True, metavar="DIR", help=model)
    where = "where to write seed_0, seed_1, ... and results.json, or its URL; if it holds an unfinished run, that run is resumed"
    parser.add_argument("--workdir", required=True, metavar="DIR", help=where)
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds, counted from train.seed (default: %(default)s)")
    add_columns(parser)
    add_profile(parser)
    parser.add_examples(*EXAMPLES)


def add_columns(parser: argparse._ActionsContainer) -> None:
    """The options that `columns` reads, None where they are not given."""
    parser.add_argument("--text", metavar="NAME[,NAME]", help="column of the text, or of both texts (task.text)")
    parser.add_argument("--label", metavar="NAME", help="column of the label (task.label)")


def columns(args: argparse.Namespace) -> dict[str, Any]:
    """{dotted path: value} of the options of `add_columns`."""
    named = {"task.text": tuple(args.text.split(",")) if args.text else (), "task.label": args.label}
    return {path: value for path, value in named.items() if value}


def run(args: argparse.Namespace) -> int:
    """Prints the scores of every seed and their summary. Returns 0; 3 if every seed diverged; 75 if it was stopped, in which case the same
    command continues. Raises UserError."""
    with connection.joined(cluster.from_environment(os.environ), lambda error: report_error(error, args.debug)):
        # Reading the model's config creates arrays, so the processes must join first.
        tune = resolve(args.config, args.init_from, "--init-from", args.overrides, columns(args))
        profiled = profile.parse(args.profile_steps)
        found = finetune(tune, args.init_from, args.workdir, args.seeds, profiled)
        show_profile(profiled, below(args.workdir, SEEDS.format(tune.train.seed)))
        if barriers.is_primary():
            if found.seeds:
                print(*table(found), quoted(found, args.workdir), sep="\n")
            if found.preempted:
                print(f"{args.workdir}: stopped in {found.stopped}; run the same command to continue", file=sys.stderr)
        if found.preempted:
            return PREEMPTED
        return 3 if found.failed == len(found.seeds) else 0


def resolve(config: str, model_folder: str, option: str, overrides: Sequence[str], values: Mapping[str, Any]) -> FineTune:
    """The settings of a recipe for the model in a folder, with the fields at the dotted paths of `values` and then those of `overrides`,
    `--config.FIELD=VALUE` items. option: the one that names the folder, for messages. Raises UserError."""
    fields = cli_config.read(config)
    if "task" not in fields:
        raise UserError("not a recipe of fine-tuning", f"--config {config}", f"name a task such as tasks/text; {option} names the model")
    written = recipe.from_dict(fields, f"--config {config}")
    given = cli_config.parsed(written, overrides, recipe.KINDS)
    _check_columns(values, given.get("task.kind", written.task.kind))
    values = {**values, **given}
    model = of_checkpoint(restore.find(model_folder, False, option)).model
    return recipe.resolve(written, model, values)


def _check_columns(columns: Mapping[str, Any], kind: str) -> None:
    """Raises UserError for an option of `add_columns` that names a field which tasks of this kind do not have."""
    known = {field.name for field in dataclasses.fields(TASKS[kind])} if kind in TASKS else set()
    for name in (path.removeprefix("task.") for path in columns):
        if known and name not in known:
            fix = "leave it out; `jaxenc inspect --fields` with the same --config prints the fields of the task"
            raise UserError(f"tasks of the kind {kind} have no such column", f"--{name}", fix)
