"""The programs of whole runs, traced and compiled once a process: a run that is resumed or evaluated asks for those that it had."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np

from jaxenc.training import evaluate, held_out, job, loop


def equal(a: Any, b: Any) -> bool:
    """Whether two arguments hold the same numbers, names and functions throughout. A dataclass with an array has no `==` of its own."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if dataclasses.is_dataclass(a):
        return all(equal(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(equal(value, b[name]) for name, value in a.items())
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


def once(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, called once for equal arguments."""
    made: list[tuple[tuple[Any, ...], Any]] = []

    def found(*asked: Any) -> Any:
        for given, result in made:
            if equal(given, asked):
                return result
        made.append((asked, make(*asked)))
        return made[-1][1]

    return found


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """In the block, `pretrain` and `evaluate` make the layout, step, evaluation and predictions of equal arguments once. All are pure
    functions of these arguments. Tests that call `compile_step` and the others themselves get new ones."""
    makers = ((job, "layout"), (loop, "compile_step"), (evaluate, "compile_evaluation"), (held_out, "compile_predictions"))
    with contextlib.ExitStack() as patched:
        for module, name in makers:
            patched.enter_context(mock.patch.object(module, name, once(getattr(module, name))))
        yield
