"""`jaxenc pretrain`: train a model, or continue the run in the work directory.

With JAX_COMPILATION_CACHE_DIR=DIR, a variable of jax, a restart reuses compiled programs that took a second or more to compile.
JAXENC_COORDINATOR, JAXENC_PROCESSES and JAXENC_PROCESS make it one of several processes (`processes.cluster`).
"""

import argparse
import os
import pathlib
import sys

from jaxenc.checkpoint.open_workdir import is_saved
from jaxenc.cli import effect
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import PREEMPTED, report_error
from jaxenc.cli.parser import Parser
from jaxenc.processes import barriers, cluster, connection
from jaxenc.training import profile
from jaxenc.training.loop import Outcome
from jaxenc.training.pretrain import pretrain


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--config", required=True, help=cli_config.HELP)
    where = "the run's directory, or its URL (gs://...); a run that stopped continues from its newest checkpoint"
    parser.add_argument("--workdir", required=True, metavar="DIR", help=where)
    parser.add_argument("--continue-from", default="", metavar="DIR", help="start from another run's whole state")
    parser.add_argument("--init-from", default="", metavar="DIR", help="start from another run's parameters only, at step 0")
    moved = "parameters under NEW start from those under OLD of --init-from; may come several times, and the longest NEW decides"
    parser.add_argument("--init-map", default=[], action="append", metavar="NEW=OLD", help=moved)
    add_profile(parser)
    parser.add_examples(
        """jaxenc pretrain --config bert/base --config.data.path=data
--config.train.batch=64 --workdir runs/first""",
        """jaxenc pretrain --config bert/tiny --config.data.path=data
--workdir runs/second --profile-steps 20:24""",
    )


def run(args: argparse.Namespace) -> int:
    """Returns 0 when the run is finished and 75 when it was stopped before that: run the same command again. Raises UserError."""
    recipe, profiled = cli_config.resolve(args.config, args.overrides), profile.parse(args.profile_steps)
    effect.check_data(recipe, args.overrides)
    with connection.joined(cluster.from_environment(os.environ), lambda error: report_error(error, args.debug)):
        outcome = pretrain(recipe, args.workdir, args.continue_from, args.init_from, args.init_map, profiled=profiled)
        show_profile(profiled, args.workdir)
        return code(outcome, args.workdir)


def add_profile(parser: argparse.ArgumentParser) -> None:
    """The option that `training.profile.parse` reads."""
    steps = "trace steps A to B with jax.profiler, into DIR/profile; the last lines say how to open it"
    parser.add_argument("--profile-steps", default="", metavar="A:B", help=steps)


def show_profile(profiled: profile.Steps, run: str | pathlib.Path) -> None:
    """Says how to open the trace in a run directory, where one was asked for."""
    if profiled.last and barriers.is_primary() and (lines := profile.how_to_open(run)):
        print(lines, file=sys.stderr)


def code(outcome: Outcome, workdir: str | pathlib.Path) -> int:
    """The exit code of a command that trained in `workdir`. For a stopped run it also prints to stderr how to continue."""
    if not outcome.preempted:
        return 0
    if barriers.is_primary():
        saved = ", checkpoint written" if is_saved(workdir, outcome.step) else ""
        print(f"{workdir}: stopped at step {outcome.step:,}{saved}: run the same command to continue", file=sys.stderr)
    return PREEMPTED
