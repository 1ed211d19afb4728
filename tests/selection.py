"""How much the tests do. `JAXENC_TESTS` says it and tests/run.sh sets it; pytest.ini says what each choice leaves out."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

CHOICE = os.environ.get("JAXENC_TESTS") or "short"
if CHOICE not in ("short", "second", "full"):
    raise ValueError(f"JAXENC_TESTS is {CHOICE!r}: it takes short, second or full")
# Everything, in full counts, with new random inputs.
FULL = CHOICE == "full"
# What can differ on another version of Python and jax.
SECOND = CHOICE == "second"


def thinned(cases: Iterable[Any], *short: Any) -> list[Any]:
    """`cases` for `pytest.mark.parametrize`: those in `short` run always, all others are marked `full`. A `short` names a case whole, or a
    case of several values by its first. Raises ValueError for one that names none."""
    cases = list(cases)
    named = lambda case, one: case == one or (isinstance(case, tuple) and case[0] == one)
    if lost := [one for one in short if not any(named(case, one) for case in cases)]:
        raise ValueError(f"no such case: {lost}")
    values = lambda case: case if isinstance(case, tuple) else (case,)
    marks = lambda case: [] if any(named(case, one) for one in short) else [pytest.mark.full]
    return [pytest.param(*values(case), marks=marks(case)) for case in cases]
