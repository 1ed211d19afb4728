"""`jaxenc evaluate`: held-out numbers of a run's checkpoint, with the scores of its task, and its predictions in a file."""

import argparse
import json
import os
import pathlib

from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import report_error
from jaxenc.cli.parser import Parser
from jaxenc.config import flatten
from jaxenc.processes import barriers, cluster, connection
from jaxenc.sharding.rules import PRESETS
from jaxenc.tasks.evaluate import evaluate
from jaxenc.training.held_out import check_place


def add_arguments(parser: Parser) -> None:
    where = "the run's directory, or its URL; of fine-tuning, also that of all seeds"
    parser.add_argument("--workdir", required=True, metavar="DIR", help=where)
    kept = "which checkpoint (default: the newest that verifies; of fine-tuning, the one that was kept)"
    parser.add_argument("--step", type=int, default=0, help=kept)
    seed = "which seed of a fine-tuning's work directory (default: the best on the dev set)"
    parser.add_argument("--seed", type=int, metavar="N", help=seed)
    parser.epilog = f"--config.FIELD=VALUE sets a field that may change on a resume, such as --config.eval.rows=1000. {parser.epilog}"
    other = "another data folder with the same tokenizer; of fine-tuning, another labelled file (default: the run's, and its dev set)"
    parser.add_argument("--data", default="", metavar="DIR|FILE", help=other)
    parser.add_argument("--batch", type=int, default=0, help="rows at a time; does not change the result")
    parser.add_argument("--mesh", choices=tuple(PRESETS), default="", help="how devices share the model (default: the run's)")
    predictions = "also write the heads' predictions for each row to this new file, with the row's number as `index`"
    parser.add_argument("--predictions", type=pathlib.Path, metavar="FILE.npz", help=predictions)
    parser.add_examples(
        "jaxenc evaluate --workdir runs/first --predictions answers.npz",
        "jaxenc evaluate --workdir runs/first --step 2000 --config.eval.rows=1000",
    )


def run(args: argparse.Namespace) -> int:
    """Prints one JSON line: the step, every held-out number and the number of predictions behind each loss. It is printed before the
    predictions are written, so that a full disk loses no number. Of several processes, process 0 prints and writes. Raises UserError."""
    with connection.joined(cluster.from_environment(os.environ), lambda error: report_error(error, args.debug)):
        values = cli_config.of_evaluation(args.overrides)
        if args.predictions:
            barriers.from_primary("place of predictions", lambda: check_place(args.predictions))
        wanted = bool(args.predictions)
        found = evaluate(args.workdir, args.step, args.data, args.batch, args.mesh, predictions=wanted, values=values, seed=args.seed)
        if barriers.is_primary():
            print(json.dumps(dict(flatten({"step": found.step, **found.numbers}))), flush=True)
        if args.predictions:
            barriers.from_primary("predictions", lambda: found.save(args.predictions))
    return 0
