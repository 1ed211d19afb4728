"""`jaxenc COMMAND`: one file a command, and one place where errors become a line and an exit code."""

import argparse
import errno
import importlib
import io
import itertools
import os
import sys
import traceback
from collections.abc import Iterator, Sequence

from jaxenc.cli.interrupted import INTERRUPTED, Terminated, interruptible
from jaxenc.cli.parser import Formatter, Parser
from jaxenc.errors import Absent, Diverged, UserError, no_memory, one_line
from jaxenc.processes import compiled, deviceless, memory

GROUPS = {
    "start here": ("demo", "doctor"),
    "text": ("tokenizer", "data"),
    "train": ("pretrain", "evaluate", "watch", "report"),
    "tasks": ("finetune", "predict", "probe"),
    "use a model": ("fill-mask", "complete", "embed", "neighbours"),
    "models of others": ("convert", "export", "resize-vocab"),
    "plan and measure": ("inspect", "compile", "bench"),
}
COMMANDS = {
    "demo": "the whole way on a CPU, from text to a model, in minutes",
    "tokenizer": "train a vocabulary on your text",
    "data": "turn text into token shards",
    "pretrain": "train a model, or continue a run",
    "finetune": "train a pretrained model on a labelled task",
    "predict": "answer new examples with a fine-tuned model",
    "probe": "compare the layers of a frozen model on a labelled task",
    "evaluate": "held-out numbers of a run's checkpoint",
    "fill-mask": "the tokens that a model predicts for a mask",
    "complete": "continue texts with a causal model",
    "embed": "contextual vectors of the words of a text, in a file",
    "neighbours": "the nearest words of a word, in context and without",
    "convert": "a published checkpoint to a run directory",
    "export": "a model to a folder that transformers or AllenNLP opens",
    "resize-vocab": "more words for a trained model and its tokenizer",
    "inspect": "parameters, shardings, FLOPs and memory of a config",
    "compile": "memory and FLOPs of a config on TPUs or GPUs elsewhere",
    "doctor": "what may go wrong with a run here, and what to do",
    "bench": "time a step, attention, the data pipeline or a fine-tuning",
    "watch": "what runs do now, in the terminal",
    "report": "curves and tables of a run, with count baselines",
}

# Commands that call the same large compiled programs many times.
COMPUTING = ("demo", "pretrain", "finetune", "predict", "probe", "evaluate", "embed", "bench")

# Commands that take --config.FIELD=VALUE.
CONFIGURED = ("demo", "pretrain", "finetune", "probe", "evaluate", "inspect", "compile", "doctor", "bench")

# Commands that compile for devices of other machines.
DEVICELESS = ("compile",)

ABOUT = "Pretrain encoder language models in JAX, fine-tune and export them."
DEBUG = "--debug"
FAILED, BAD_INPUT, DIVERGED, PREEMPTED = 1, 2, 3, 75
DISK = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "choose another place",
    errno.EEXIST: "choose another place",
    errno.ENOTDIR: "choose another place",
    errno.EISDIR: "choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EIO: "check the disk",
}
SMALLER = "lower train.batch or raise train.microbatches"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns 0 done · 2 bad input or config · 3 diverged · 75 stopped by preemption, run again · 1 anything else."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the encoding of the terminal does not have is escaped, as Python does on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with interruptible(FAILED):
            code = _run(argv)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (Exception, KeyboardInterrupt) as error:
        if not _expected(error):
            raise
        return report_error(error, DEBUG in argv)


def _run(argv: list[str]) -> int:
    os.environ.update(compiled.settings(os.environ))
    if argv[:1] and argv[0] in DEVICELESS:
        os.environ.update(deviceless.settings())
    overrides = [item for item in argv if item.startswith("--config.")]
    for item, after in itertools.pairwise(argv):
        if item.startswith("--config.") and "=" not in item and not after.startswith("-"):
            raise UserError("a field is set with =", item, f"write {item}={after}")
    _refuse_empty(argv)
    args = _parser(argv).parse_args([item for item in argv if item not in (DEBUG, *overrides)])
    if overrides and args.command not in CONFIGURED:
        raise UserError(f"`jaxenc {args.command}` takes no config", overrides[0], "leave it out")
    args.overrides, args.debug = overrides, DEBUG in argv
    if args.command in COMPUTING:
        memory.keep_freed(os.environ)
    return _module(args.command).run(args)


def _refuse_empty(argv: Sequence[str]) -> None:
    """Raises UserError for an empty value, such as that of an unset shell variable, which as a path would mean the current folder. Fields
    of the config may be empty."""
    option = ""
    for item in argv:
        name, equals, value = item.partition("=")
        option = name if item.startswith("--") else option
        if not item or (item.startswith("--") and not item.startswith("--config.") and equals and not value):
            raise UserError("empty", option or "an argument", "is a shell variable unset? Give a value or leave it out")


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the command that `argv` names: only that command's file is imported."""
    parser = Parser("jaxenc", description=ABOUT, epilog="\n".join(_listing()), usage="jaxenc COMMAND [options]", formatter_class=Formatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", prog="jaxenc", help=argparse.SUPPRESS)
    for name, summary in COMMANDS.items():
        description = summary[0].upper() + summary[1:] + "."
        epilog = f"{DEBUG} shows the traceback of an error."
        # launch/local.sh finds --workdir by its whole name.
        sub = commands.add_parser(name, description=description, epilog=epilog, allow_abbrev=False, formatter_class=Formatter)
        if name in argv:
            _module(name).add_arguments(sub)
    return parser


def _listing() -> Iterator[str]:
    """The commands, grouped."""
    for group, names in GROUPS.items():
        yield f"{group}:"
        yield from (f"  {name:<14}{COMMANDS[name]}" for name in names)
    yield ""
    yield "`jaxenc COMMAND --help` shows what a command takes, with an example."


def _module(command: str) -> object:
    return importlib.import_module("jaxenc.cli." + command.replace("-", "_"))


def _expected(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in DISK
    if isinstance(error, RuntimeError):
        return bool(no_memory(error))
    return isinstance(error, (UserError, Diverged, Absent, KeyboardInterrupt))


def report_error(error: BaseException, debug: bool) -> int:
    """Prints the error that ended a command, as one line if the user can fix it and otherwise, or with `debug`, as a traceback; returns the
    exit code."""
    expected = _expected(error)
    if debug or not expected:
        # In one write: a signal, or an abort by jax, may end the process between two.
        print("".join(traceback.format_exception(error)), end="", file=sys.stderr, flush=True)
    return _fail(error) if expected else FAILED


def _fail(error: BaseException) -> int:
    codes = ((Terminated, PREEMPTED), (Diverged, DIVERGED), ((UserError, OSError, RuntimeError), BAD_INPUT))
    code = next((code for kinds, code in codes if isinstance(error, kinds)), FAILED)
    message = INTERRUPTED if isinstance(error, KeyboardInterrupt) else str(error)
    if isinstance(error, OSError):
        message = f"{error.filename or 'output'}: {error.strerror}: {DISK[error.errno]}"
    if isinstance(error, RuntimeError):
        message = f"{no_memory(error)}; {SMALLER}"
    print(f"jaxenc: {one_line(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
