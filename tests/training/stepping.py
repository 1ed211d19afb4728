"""Whole runs whose steps and evaluations compute nothing, for tests of what happens around them: no model is drawn or compiled."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from unittest import mock

import jax.numpy as jnp

from jaxenc.objectives import encoder
from jaxenc.training import loop
from jaxenc.tree import Tree
from tests import programs

Evaluate = Callable[..., Mapping[str, float]]


def finished(*ignored: Any) -> Mapping[str, float]:
    """An evaluation of one number."""
    return {"loss": 1.0}


def one_layer(*ignored: Any) -> Tree:
    """All parameters of a model with heads; without a bias and a norm the optimizer's patterns would match nothing."""
    return {"layer": {"kernel": jnp.ones((8, 8)), "bias": jnp.ones(8), "norm": {"scale": jnp.ones(8)}}}


@contextlib.contextmanager
def stepping(
    bad: Collection[int] = (), after: Callable[[int], object] = lambda step: None, evaluate: Evaluate | None = finished
) -> Iterator[None]:
    """bad: steps that report that they are not finite. after: called with the number of each step that was taken. evaluate: gives the
    numbers of an evaluation, from the arguments of `training.evaluate.evaluation`; None: evaluations are real."""

    def compile_step(*ignored: Any) -> Any:
        def step(state: Any, batch: Any, seed: Any) -> Any:
            number = int(state.step) + 1
            after(number)
            report = {"loss": 1.0, "metrics": {}, "gradient_norm": 1.0, "lr": 0.1, "bad": number in bad, "skipped": 0}
            return dataclasses.replace(state, step=state.step + 1), report

        return step

    def evaluation(*given: Any) -> Any:
        return lambda params, asked: evaluate(*given)

    with contextlib.ExitStack() as patched:
        patched.enter_context(programs.apart())  # or a real run would get the layout of these parameters
        patched.enter_context(mock.patch.object(loop, "compile_step", compile_step))
        patched.enter_context(mock.patch.object(encoder, "init", one_layer))
        if evaluate is not None:
            patched.enter_context(mock.patch.object(loop, "assessment", evaluation))
        yield
