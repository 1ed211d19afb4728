"""`jaxenc COMMAND`: one file a command, and one place where errors become a line and an exit code."""

import argparse
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from jaxenc.errors import Diverged, UserError

COMMANDS = {
    "demo": "embedded corpus, vocabulary, data, a tiny BERT and fill-mask, on a CPU",
    "tokenizer": "train a vocabulary on your text",
    "data": "turn text into token shards",
    "pretrain": "train a model, or go on with a run",
    "evaluate": "held-out numbers of a run's checkpoint",
    "fill-mask": "what a model puts in the place of [MASK]",
    "inspect": "parameters, shardings, FLOPs and memory of a config; runs nothing",
    "bench": "time the training step of a config on this machine",
    "report": "curves and tables of a run, beside count baselines",
}

BAD_INPUT, FAILED = 2, 1
DISK = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "choose another place",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns 0 done · 2 bad input or config · 75 stopped by preemption, run again · 1 anything else."""
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    argv = [item for item in argv if item != "--debug"]
    overrides = [item for item in argv if item.startswith("--config.")]
    args = _parser(argv).parse_args([item for item in argv if not item.startswith("--config.")])
    if overrides and not hasattr(args, "config"):
        return _fail(f"{overrides[0]}: `jaxenc {args.command}` takes no config", BAD_INPUT)
    args.overrides = overrides
    try:
        return _module(args.command).run(args)
    except (UserError, Diverged, OSError) as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, OSError):
            if error.errno not in DISK:
                raise
            return _fail(f"{error.strerror}: {error.filename or 'output'}: {DISK[error.errno]}", BAD_INPUT)
        return _fail(str(error), FAILED if isinstance(error, Diverged) else BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the command that `argv` names: only that command's file is imported."""
    parser = argparse.ArgumentParser("jaxenc", description="Pretrain encoder language models in JAX.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        description = summary[0].upper() + summary[1:] + "."
        sub = commands.add_parser(name, help=summary, description=description, epilog="--debug shows the traceback of an error.")
        if name in argv:
            _module(name).add_arguments(sub)
    return parser


def _module(command: str) -> object:
    return importlib.import_module("jaxenc.cli." + command.replace("-", "_"))


def _fail(message: str, code: int) -> int:
    print(f"jaxenc: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
