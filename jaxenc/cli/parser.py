"""An argument parser whose errors are one line that names the nearest command or option."""

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from jaxenc.errors import UserError


class Formatter(argparse.HelpFormatter):
    """The formatter of argparse, but indented lines of a description or an epilog, such as examples, stay as they are, and the usage names
    required options only: the others are listed below it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def add_usage(self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None = None) -> None:
        """As argparse."""
        either = [group for group in groups if group.required]
        one_of = [action for group in either for action in group._group_actions]
        needed = [action for action in actions if action.required or not action.option_strings or action in one_of]
        super().add_usage(usage, needed, either, prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        wrap = super()._fill_text
        return "\n".join(line if line.startswith(" ") else wrap(line, width, indent) for line in text.splitlines())


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UserError instead of printing its usage, and names the nearest command or option for an unknown one.

    examples: the command lines of `add_examples`. alone: the option of `add_alone`.
    """

    examples: tuple[str, ...] = ()
    alone: str = ""

    def error(self, message: str) -> NoReturn:
        """Raises UserError with argparse's message and the command whose help explains it."""
        raise UserError(message, "", self._help)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None) -> object:
        """As argparse, but an unknown option or command is named before a missing one: it is often the missing one, misspelled."""
        # argparse parses a command's own arguments by calling this method of the command's parser.
        given = list(args or ())
        if self._subparsers is not None:
            self._refuse_unknown_command(given)
        else:
            self._refuse_unknown_option(given)
            self._allow_alone(given)
        found, unknown = super().parse_known_args(given, namespace)
        if unknown:
            quotes = "" if unknown[0].startswith("-") else "; a value with blanks stands in quotes"
            raise UserError(f"`{self.prog}` does not take it", unknown[0], f"{self._help}{quotes}")
        return found, unknown

    def add_alone(self, name: str, values: Sequence[str], help: str) -> None:
        """Adds an option that is given without any other, required ones included: another task of the command, which has one at most.

        values: the names of its values in the help. The namespace holds them in a list, and None where the option is not given.
        """
        self.add_argument(name, nargs=len(values), metavar=tuple(values), help=help)
        self.alone = name

    def add_examples(self, *commands: str) -> None:
        """Shows command lines, each as it would be typed, at the end of the help. A newline continues one on the next line."""
        self.examples = tuple(command.replace("\n", " ") for command in commands)
        lines = [f"  {line}" for command in commands for line in command.replace("\n", " \\\n    ").split("\n")]
        self.epilog = "\n".join([f"example{'s' * (len(commands) > 1)}:", *lines, "", self.epilog or ""])

    def _allow_alone(self, given: Sequence[str]) -> None:
        """Lifts what is required where the option of `add_alone` is given; raises UserError for any other option next to it."""
        options = [name for item in given if (name := item.partition("=")[0]) in self._option_string_actions]
        if not self.alone or self.alone not in options or {"-h", "--help"} & {*options}:
            return
        options.remove(self.alone)
        if options:
            raise UserError(f"`{self.prog} {self.alone}` takes no other option", options[0], f"leave it out, or leave {self.alone} out")
        for action in self._actions:
            action.required = False

    @property
    def _help(self) -> str:
        return f"`{self.prog} --help` shows what it takes"

    def _refuse_unknown_command(self, given: Sequence[str]) -> None:
        commands = [name for action in self._subparsers._group_actions for name in action.choices]
        command = next((item for item in given if not item.startswith("-")), None)
        if command is not None and command not in commands:
            raise UserError("no such command", command, f"{_meant(command, commands)} `{self.prog} --help` lists them")

    def _refuse_unknown_option(self, given: Sequence[str]) -> None:
        options = [name for name in self._option_string_actions if name.startswith("--") and name != "--help"]
        fields = "; a field of the config is --config.FIELD=VALUE" if "--config" in options else ""
        ends = given.index("--") if "--" in given else len(given)
        for item in given[:ends]:
            name = item.partition("=")[0]
            # As argparse tells an option from a value: -1 is a number, and what holds a blank is text.
            if re.match("-+[A-Za-z]", name) and " " not in item and name not in self._option_string_actions:
                raise UserError(f"`{self.prog}` has no such option", name, f"{_meant(name, options)} {self._help}{fields}")


def _meant(name: str, known: Iterable[str]) -> str:
    """The names in `known` that `name` may stand for: the nearest ones, or all of them where none is near."""
    by_letters = {item.lstrip("-"): item for item in known}
    bare = name.lstrip("-")
    # Words in common are near too: `new` and `max-new`.
    near = difflib.get_close_matches(bare, by_letters, n=3) or [one for one in by_letters if {*bare.split("-")} & {*one.split("-")}]
    return f"did you mean {' or '.join(by_letters[one] for one in near)}?" if near else f"it takes {', '.join(by_letters.values())};"
