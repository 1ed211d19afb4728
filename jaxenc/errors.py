"""The one exception that is a person's to mend."""


class UserError(Exception):
    """Bad input or a bad configuration: one line that says what, where and what to do.

    The command line prints the message and exits with code 2; `--debug` shows the traceback.
    """


class Unsupported(UserError):
    """Sound input of a kind, or with a setting, that jaxenc does not have."""


class Diverged(Exception):
    """Training stopped because too many steps in a row were not finite. The command line prints the message and exits with code 1."""


class Absent(Exception):
    """Another process of the run did not come in time. The command line prints the message and exits with code 1, and all start again."""
