"""The programs of whole runs, traced and compiled once a process: a run that is resumed or evaluated asks for those that it had."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from jaxenc.convert import assemble
from jaxenc.inference import load
from jaxenc.inference.decode import Decoder
from jaxenc.inference.network import Network
from jaxenc.training import begin, evaluate, job, loop, predict, state, step


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


# Functions that trace or compile, and the modules that call them by their names.
MAKERS = (
    (state.parameters, (state, begin, load, assemble)),
    (state.layout, (job,)),
    (step.compile_step, (loop,)),
    (evaluate.compile_evaluation, (evaluate,)),
    (predict.compile_predictions, (predict,)),
)


def same(*given: Any) -> Any:
    """The arguments themselves as a key."""
    return given


def once(make: Callable[..., Any], key: Callable[..., Any] = same) -> Callable[..., Any]:
    """`make`, called once for arguments whose `key` is equal."""
    made: list[tuple[Any, Any]] = []

    def found(*asked: Any) -> Any:
        wanted = key(*asked)
        for held, result in made:
            if equal(held, wanted):
                return result
        made.append((wanted, make(*asked)))
        return made[-1][1]

    return found


@contextlib.contextmanager
def shared() -> Iterator[None]:
    """In the block, `pretrain`, `evaluate`, `load` and `convert` make the shapes, layout, step, evaluation and predictions of equal
    arguments once, and equal models and decoders share their compiled functions. All are pure functions of these arguments. Tests that call
    `compile_step` and the others themselves get new ones."""
    with contextlib.ExitStack() as patched:
        for plain, modules in MAKERS:
            patched.enter_context(_calling(once(plain), plain.__name__, modules))
        of_network = lambda network: (network.config, network.objective)
        for owner, name, key in ((Network, "_compiled", of_network), (Decoder, "_prefill", same), (Decoder, "_decode_step", same)):
            compiled = functools.cached_property(once(getattr(owner, name).func, key))
            compiled.__set_name__(owner, name)
            patched.enter_context(mock.patch.object(owner, name, compiled))
        yield


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """In the block nothing is shared: for tests that replace a part of what is traced, which the arguments do not show."""
    with contextlib.ExitStack() as patched:
        for plain, modules in MAKERS:
            patched.enter_context(_calling(plain, plain.__name__, modules))
        yield


@contextlib.contextmanager
def _calling(function: Callable[..., Any], name: str, modules: tuple[ModuleType, ...]) -> Iterator[None]:
    """In the block, `modules` call `function` by `name`."""
    with contextlib.ExitStack() as patched:
        for module in modules:
            patched.enter_context(mock.patch.object(module, name, function))
        yield
