"""Exceptions that end a command with a one-line message instead of a traceback."""

from typing import Self

LONGEST = 4000  # characters of a message
# The start of jax's error message for an array that does not fit in memory.
NO_MEMORY = "RESOURCE_EXHAUSTED"


def one_line(text: str) -> str:
    """`text` as one printable line: newlines and control characters, which a file name may contain, are escaped, and the middle of a text
    over LONGEST characters is cut out."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2 - 20]} ... {text[-LONGEST // 2 + 20 :]}"


class UserError(Exception):
    """Bad input or a bad configuration: one line that says where it is, what is wrong, and what to do: `where: what; fix`.

    The command line prints the message and exits with code 2; `--debug` shows the traceback.
    """

    def __init__(self, what: object, where: object = "", fix: str = "") -> None:
        """what: what is wrong. where: a file, with its line if there is one, or an option; '' where `what` names the field of the run. fix:
        what the user can do, or the values that are possible."""
        self.what, self.where, self.fix = str(what), str(where), fix
        message = f"{self.where}: {self.what}" if self.where else self.what
        super().__init__(one_line(f"{message}; {fix}" if fix else message))

    def at(self, where: object) -> Self:
        """The same error with `where` before its own place."""
        return self.reworded(where=f"{where}: {self.where}" if self.where else str(where))

    def renamed(self, here: object, there: object) -> Self:
        """The same error with `there` instead of `here`, such as a URL instead of the path of its copy."""
        return self.reworded(*(text.replace(str(here), str(there)) for text in (self.what, self.where, self.fix)))

    def reworded(self, what: str | None = None, where: str | None = None, fix: str | None = None) -> Self:
        """The same error, with its type and its other attributes, but with the parts that are given."""
        parts = [own if given is None else given for own, given in ((self.what, what), (self.where, where), (self.fix, fix))]
        error = type(self).__new__(type(self))  # a subclass may take other arguments
        error.__dict__.update(self.__dict__)
        UserError.__init__(error, *parts)
        return error


class Unsupported(UserError):
    """Valid input of a kind, or with a setting, that jaxenc does not support."""


class Diverged(Exception):
    """Training stopped because too many steps in a row, or the state to save, were not finite; a restart would end the same way.

    what: where it happened; the advice is added. The command line prints the message and exits with code 3, and no launcher restarts it.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what}: lower optim.lr, in a new work directory with --continue-from this one")


class Absent(Exception):
    """Another process of the run ended or did not answer in time.

    The command line prints the message and exits with code 1; `launch/local.sh` then starts all processes again.
    """


def no_memory(error: RuntimeError) -> str:
    """What is wrong, on one line, where `error` is jax's for a device without enough memory, '' for any other error."""
    text = str(error)
    reason = text.removeprefix(f"{NO_MEMORY}: ").partition("\n")[0].rstrip(".")
    return f"the device does not have enough memory ({reason})" if text.startswith(NO_MEMORY) else ""
