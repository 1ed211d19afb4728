"""Requests to the file system of a URL, repeated when they fail for a temporary reason."""

import errno
import re
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from jaxenc.errors import UserError

T = TypeVar("T")
# Seconds before each retry. gcsfs and s3fs also retry some requests themselves.
WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)
ADVICE = "check the address, the network and your permissions"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
# A retry does not help these. File systems give the reason as a status, as text, or only as the class of the exception.
_FINAL = (PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError, ImportError, NotImplementedError, TypeError, ValueError)


def retried(where: str, what: str, call: Callable[[], T]) -> T:
    """What `call` returns. While it fails for a temporary reason (a status 503, a lost connection) it is repeated after each of WAITS, with
    a line on stderr each time.

    where: the URL. what: what `call` does to it, as a participle for messages, such as `read`. Raises FileNotFoundError and UserError as
    `call` does, and UserError for any other error, and for a temporary one after the last of WAITS.
    """
    waits = iter(WAITS)
    while True:
        try:
            return call()
        except UserError:
            raise
        except Exception as raised:
            error = _meant(raised)
            if isinstance(error, FileNotFoundError):
                raise
            wait = None if _is_final(error) else next(waits, None)
            if wait is None:
                full = getattr(error, "errno", None) in FULL
                raise UserError(f"cannot be {what} ({reason(error)})", where, "free some space there" if full else ADVICE) from error
            print(f"{where}: cannot be {what} ({reason(error)}): trying again in {wait:g} s", file=sys.stderr, flush=True)
        time.sleep(wait)


def unless_missing(call: Callable[[], T], default: T) -> T:
    """What `call` returns, or `default` where it finds no such file. Raises the error of a request that failed for another reason."""
    try:
        return call()
    except FileNotFoundError as raised:
        if (error := _meant(raised)) is not raised and not isinstance(error, FileNotFoundError):
            raise error from None  # `raised` has it as its cause
        return default


def reason(error: BaseException) -> str:
    """The first line of what an error of a file system says."""
    # str() of an OSError also names files of this machine, such as temporary ones, which mean nothing to a user.
    text = getattr(error, "strerror", None) or str(error)
    return text.strip().partition("\n")[0] or type(error).__name__


def _meant(error: Exception) -> Exception:
    """The error itself, or the one that it hides: fsspec's http raises FileNotFoundError whatever the reason, with the reason as its
    cause."""
    cause = error.__cause__
    library = type(cause).__module__.partition(".")[0]
    of_request = library == "aiohttp" or (library == "builtins" and isinstance(cause, OSError))
    return cause if isinstance(error, FileNotFoundError) and of_request and _status(cause) not in ("404", "410") else error


def _status(error: Exception) -> str:
    """The HTTP status of an error, '' where it has none."""
    return str(getattr(error, "status", "") or getattr(error, "code", ""))


def _is_final(error: Exception) -> bool:
    """Whether a retry would fail in the same way."""
    status = _status(error)
    refused = re.fullmatch(r"4\d\d", status) and status not in ("408", "429")
    # gcsfs raises a plain OSError for a status 403.
    refused = refused or str(error).startswith(("Forbidden", "Access Denied"))
    return bool(refused or isinstance(error, _FINAL) or getattr(error, "errno", None) in FULL)
