"""What ends a command with one line instead of a traceback."""

LONGEST = 4000  # characters of a message
# What jax's own error begins with when an array does not fit.
NO_MEMORY = "RESOURCE_EXHAUSTED"


def one_line(text: str) -> str:
    """`text` on one line: what ends a line or moves a terminal, as a name from a file may, is escaped. A long one loses its middle."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2 - 20]} ... {text[-LONGEST // 2 + 20 :]}"


class UserError(Exception):
    """Bad input or a bad configuration: one line that says what, where and what to do.

    The command line prints the message and exits with code 2; `--debug` shows the traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class Unsupported(UserError):
    """Sound input of a kind, or with a setting, that jaxenc does not have."""


class Diverged(Exception):
    """Training stopped because too many steps in a row, or the state to save, were not finite; it would again.

    `what` says where; how to go on is added. The command line prints the message and exits with code 3, and nothing starts it again.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: lower optim.lr, in a new work directory with --continue-from this one")


class Absent(Exception):
    """Another process of the run is gone or did not come in time.

    The command line prints the message and exits with code 1; `launch/local.sh` then starts all processes again.
    """


def no_memory(error: RuntimeError, mend: str) -> str:
    """One line that ends with `mend`, what to do, where jax says that an array does not fit; '' for any other error."""
    text = str(error)
    told = text.removeprefix(f"{NO_MEMORY}: ").partition("\n")[0].rstrip(".")
    return f"the device has not enough memory ({told}): {mend}" if text.startswith(NO_MEMORY) else ""
