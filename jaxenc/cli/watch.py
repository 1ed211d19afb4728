"""`jaxenc watch`: what runs do now, in the terminal."""

import argparse
import pathlib
import sys
import time
from collections.abc import Sequence

from rich.live import Live
from rich.text import Text

from jaxenc import storage
from jaxenc.cli.parser import Parser
from jaxenc.errors import UserError
from jaxenc.progress import Terminal
from jaxenc.reports import history, watch

LOCAL, REMOTE = 2.0, 30.0  # seconds between two looks at a directory
EXAMPLES = ("jaxenc watch --workdir runs/first", "jaxenc watch --workdir runs/first runs/second --once")


def add_arguments(parser: Parser) -> None:
    where = "run directories, or their URLs; of `jaxenc finetune` all seeds. Several are shown as a table"
    parser.add_argument("--workdir", required=True, nargs="+", action="extend", metavar="DIR", help=where)
    parser.add_argument("--once", action="store_true", help="print what there is now and end")
    parser.add_examples(*EXAMPLES)


def run(args: argparse.Namespace) -> int:
    """Shows the runs until Ctrl-C, or once. Returns 0. Raises UserError for files that are damaged, and where there is no terminal."""
    console = Terminal(sys.stdout)
    if args.once:
        for workdir in args.workdir:
            if not storage.is_url(workdir) and not pathlib.Path(workdir).is_dir():
                raise UserError("no such directory", workdir, "name the directory of a run")
        print("\n".join(frame(args.workdir, console)))
        return 0
    if not sys.stdout.isatty() or console.is_dumb_terminal:
        raise UserError("shows a live picture, and this is not a terminal", "jaxenc watch", "add --once")
    every = REMOTE if any(map(storage.is_url, args.workdir)) else LOCAL
    try:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(Text("\n".join(frame(args.workdir, console)), no_wrap=True), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        return 0


def frame(workdirs: Sequence[str], console: Terminal) -> list[str]:
    """The lines of one picture, which fit the terminal."""
    runs, now, width = [watch.look(workdir) for workdir in history.expanded(workdirs)], time.time(), console.width - 1
    if len(runs) > 1:
        return watch.table(runs, now, width)
    return watch.lines(runs[0], now, width, console.encoding.startswith("utf"))
