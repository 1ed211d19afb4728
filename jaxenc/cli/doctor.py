"""`jaxenc doctor`: checks processes, devices, disks and data before a run starts, alone or as one of several processes."""

import argparse
import dataclasses
import math
import os
import socket

from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import BAD_INPUT, report_error
from jaxenc.doctor import cache, devices, hosts, roll_call
from jaxenc.doctor.examine import Request, examine
from jaxenc.errors import Absent, UserError
from jaxenc.findings import OK, PROBLEM, WARNING, Finding
from jaxenc.processes import barriers, cluster, connection

OF_WORKDIR = "of the run to come: can all processes write there, and is there room; of one that trained: is its loss normal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workdir", default="", metavar="DIR", help=OF_WORKDIR)
    parser.add_argument("--data", default="", metavar="DIR", help="folder of `jaxenc data` (default: that of --config, if it names one)")
    parser.add_argument("--config", default="", metavar="RECIPE", help=f"tells what a checkpoint takes; {cli_config.HELP}")
    parser.add_argument("--verify", action="store_true", help="compare the checksums of the data's files too, not their sizes alone")
    wait = f"most seconds that one process waits for another, or for a device (default: {Request.seconds:g})"
    parser.add_argument("--wait", type=float, default=Request.seconds, metavar="SECONDS", help=wait)
    parser.add_examples(
        "jaxenc doctor --workdir runs/base --config bert/base --config.data.path=data",
        "bash launch/local.sh --procs 2 -- jaxenc doctor --workdir runs/base",
    )


def run(args: argparse.Namespace) -> int:
    """Prints a line for each check, in process 0. Returns 0, or 2 where there is a problem. Raises UserError for wrong options."""
    if not args.wait > 0:
        raise UserError(f"{args.wait:g} seconds", "--wait", "give a number above 0")
    if args.overrides and not args.config:
        raise UserError("it sets a field of a config, and there is none", args.overrides[0], "add --config, or leave it out")
    runs = (cli_config.resolve(args.config, args.overrides),) if args.config else ()
    host, own = socket.gethostname(), dataclasses.replace(cluster.from_environment(os.environ), meet=math.ceil(args.wait))
    request = Request(host, os.environ, args.workdir, args.data, args.verify, runs, seconds=args.wait)
    printed: list[Finding] = []

    def say(finding: Finding, here: bool) -> None:
        printed.append(finding)
        if here:
            print(finding.line, flush=True)

    for finding in hosts.before(own) or _roll_call(own, args.wait, host):
        say(finding, own.index == 0 or finding.level == PROBLEM)
    if _code(printed):
        return _code(printed)

    def report(error: BaseException) -> int:
        found = devices.refused(error, os.environ)
        if isinstance(error, (UserError, Absent)):
            found = [Finding(PROBLEM, roll_call.CHECK, str(error))]
        for finding in found:
            say(finding, True)
        return _code(found) or report_error(error, args.debug)

    try:
        with cache.unwritten(), connection.joined(own, report):
            for finding in examine(request):
                say(finding, barriers.is_primary())
            if barriers.is_primary():
                print(_summary(printed), flush=True)
            if any(finding.stuck for finding in printed):
                connection.leave(_code(printed))
    except (RuntimeError, AssertionError) as error:  # of a process that is alone: `joined` ends one of several
        if not devices.refused(error, os.environ):
            raise
        report(error)
    return _code(printed)


def _roll_call(own: cluster.Cluster, seconds: float, host: str) -> list[Finding]:
    if own.count > 1 and own.address:
        return roll_call.call(own, seconds, host)
    return [Finding(OK, roll_call.CHECK, f"1, on {hosts.counted([host])}")]


def _code(findings: list[Finding]) -> int:
    return BAD_INPUT if any(finding.level == PROBLEM for finding in findings) else 0


def _summary(findings: list[Finding]) -> str:
    count = lambda level: sum(finding.level == level for finding in findings)
    problems, warnings = count(PROBLEM), count(WARNING)
    return f"{problems or 'no'} problem{'s' * (problems != 1)}, {warnings or 'no'} warning{'s' * (warnings != 1)}"
