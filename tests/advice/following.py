"""Does what an error advises and repeats what failed.

An error's advice is its `fix`. A fault raises it, a follower turns `fix` into another attempt, and the attempt must succeed. It may meet
another error, whose advice is followed too, but never the same check again.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar
from unittest import mock

import jaxenc
from jaxenc import errors
from jaxenc.errors import UserError

PACKAGE = Path(jaxenc.__file__).parent
STEPS = 5  # errors that one fault may lead to, one after another

# `file:line` of the calls of UserError and Unsupported whose advice was followed and worked.
FOLLOWED: set[str] = set()

S = TypeVar("S")


def calls() -> set[str]:
    """`file:line` of every call of UserError and Unsupported in jaxenc."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("UserError", "Unsupported"):
                found.add(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    return found


def _place(frame: FrameType) -> str:
    """`file:line` of the call that makes an error; an error made by `at` has the place of the first."""
    if frame.f_code is UserError.at.__code__:
        return frame.f_locals["self"].made
    return f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_lineno}"


@contextmanager
def noting_places() -> Iterator[None]:
    """Errors made in the block have `made`, the place of the call that made them."""
    init = UserError.__init__

    def noting(self: Any, *args: object, **named: object) -> None:
        init(self, *args, **named)
        frame = sys._getframe(1)
        self.made = _place(frame) if Path(frame.f_code.co_filename).is_relative_to(PACKAGE) else ""

    with mock.patch.object(errors.UserError, "__init__", noting):
        yield


def refused(act: Callable[[S], object], attempt: S) -> UserError | None:
    """The error of an attempt, None where it succeeds."""
    try:
        act(attempt)
    except UserError as error:
        return error
    return None


def follow(act: Callable[[S], object], fault: S, advised: Callable[[UserError, S], list[S]]) -> list[str]:
    """Every attempt that the advice names succeeds, if need be after more advice; the messages met, [] where the fault is none.

    advised: the attempts that an error's `fix` names, at least one.
    """
    return _follow(act, fault, advised, ())


def _follow(act: Callable[[S], object], fault: S, advised: Callable[[UserError, S], list[S]], before: tuple[str, ...]) -> list[str]:
    error = refused(act, fault)
    if error is None:
        return []
    check = f"{error.made}: {error.where}: {error.what.partition(' is ')[0]}"
    assert check not in before, f"{before} refused what it advised: {error}"
    assert len(before) < STEPS, f"{before}: {error}"
    attempts = advised(error, fault)
    assert attempts, f"{error.made}: nobody can follow: {error}"
    met = [str(error)]
    for attempt in attempts:
        met += _follow(act, attempt, advised, (*before, check))
    FOLLOWED.add(error.made)
    return met


def literal(text: str) -> Any:
    """A value as a message writes it: a number, a tuple or a quoted str, and anything else as a str."""
    text = text.strip()
    if text == "2^31 - 1":
        return 2**31 - 1
    try:
        return ast.literal_eval(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text))
    except (SyntaxError, ValueError):
        return text


def listed(text: str) -> list[Any]:
    """The values of `a, b or c`."""
    return [literal(item) for item in re.split(r", or |, | or | and ", text) if item]
