"""`jaxenc demo`: everything on one CPU, from text found on this machine to a model that fills in words, and a classifier."""

import argparse
import dataclasses
import os
import pathlib
import shlex
import sys

from jaxenc.cli import effect, fill_mask
from jaxenc.cli import pretrain as command
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import main
from jaxenc.cli.parser import Parser
from jaxenc.cli.report import show
from jaxenc.data.folders import must_hold_only
from jaxenc.inference.load import load
from jaxenc.processes import cluster
from jaxenc.reports.report import report
from jaxenc.tasks import packages, scores
from jaxenc.tasks import recipe as task_recipes
from jaxenc.tasks.baselines import baselines
from jaxenc.tasks.results import NAME, Results
from jaxenc.training.pretrain import pretrain

PARTS = ("tokenizer", "data", "run", "task", "tuned")
SENTENCES = (
    "Return the [MASK] of the given object.",
    "If the file does not exist, an [MASK] is raised.",
    "The default [MASK] is used when no argument is given.",
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--config", default="bert/tiny", help="what to train; small enough for this machine")
    where = "where everything goes; the same command again continues there"
    parser.add_argument("--workdir", default=pathlib.Path("runs/demo"), type=pathlib.Path, help=where)
    tuned = "then fine-tune it as a classifier: which package is a docstring from? (needs the extra `tasks`)"
    parser.add_argument("--finetune", action="store_true", help=tuned)
    parser.add_examples(
        "jaxenc demo",
        "jaxenc demo --workdir runs/demo --finetune",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the other commands one after another, printing each. An existing tokenizer, data folder or run is reused. Returns the exit
    code."""
    cluster.must_be_alone(os.environ, "jaxenc demo")
    must_hold_only(args.workdir, PARTS, "--workdir")
    if args.finetune:
        scores.require()
    tokenizer, data, workdir = (args.workdir / name for name in PARTS[:3])
    steps = [
        ["tokenizer", "--input", "docstrings", "--type", "wordpiece", "--vocab-size", "4096", "--lowercase", "--out", str(tokenizer)],
        ["data", "--input", "docstrings", "--tokenizer", str(tokenizer), "--out", str(data), "--held-out", "0.02"],
    ]
    for step in steps[1:] if tokenizer.exists() else steps:
        say(f"$ jaxenc {shlex.join(step)}")
        if failed := main(step):
            return failed
    overrides = [f"--config.data.path={data}", *args.overrides]
    say(f"$ jaxenc {shlex.join(['pretrain', '--config', args.config, '--workdir', str(workdir), *overrides])}")
    recipe = cli_config.resolve(args.config, overrides)
    effect.check_data(recipe, args.overrides)
    if stopped := command.code(pretrain(recipe, workdir), workdir):
        return stopped
    say(f"$ jaxenc report --workdir {shlex.quote(str(workdir))}")
    show(report(workdir))
    model = load(workdir)
    for sentence in SENTENCES:
        say(f'$ jaxenc fill-mask --model {shlex.quote(str(workdir))} --text "{sentence}"')
        print(sentence, *map(fill_mask.shown, model.fill_mask(sentence)), sep="\n")
    return finetune(args.workdir) if args.finetune else 0


def finetune(folder: pathlib.Path) -> int:
    """Fine-tunes the model in `folder` on a task made of docstrings of this machine, and prints its score beside those of two baselines.
    Returns the exit code. Raises UserError."""
    task, tuned = folder / "task", folder / "tuned"
    if not (task / "dev.jsonl").exists():
        say(f"writing {task}: paragraphs of docstrings, each with the package that it is from")
        packages.write(task)
    step = ["finetune", "--config", "tasks/packages", f"--config.data.path={task}", "--init-from", str(folder / "run")]
    step += ["--workdir", str(tuned)]
    say(f"$ jaxenc {shlex.join(step)}")
    if failed := main(step):
        return failed
    tune = task_recipes.from_dict(cli_config.read("tasks/packages"))
    files = dataclasses.replace(tune.data, path=str(task))
    train, dev = (tune.task.examples(files, split) for split in ("train", "dev"))
    metric = tune.task.metric
    found = {"fine-tuned": Results.read(tuned / NAME).seeds[0].scores[metric], **baselines(tune.task, train, dev)}
    for name, score in found.items():
        print(f"{name:<16}{metric} {score:.4f}")
    return 0


def say(line: str) -> None:
    """A line of progress on stderr."""
    print(line, file=sys.stderr, flush=True)
