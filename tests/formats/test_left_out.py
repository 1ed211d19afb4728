"""Patterns of tensors that are left out: what they match, and the ones that a message offers."""

import fnmatch

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.formats import left_out
from jaxenc.formats.tensor import Tensor


def tensors(*names: str) -> dict[str, Tensor]:
    return {name: Tensor(name, (1,), np.dtype(np.float32), lambda: np.zeros(1, np.float32)) for name in names}


def test_patterns_match_whole_names() -> None:
    kept, dropped = left_out.split(tensors("bert.a", "crf.a", "crf.b", "CRF.c"), ["crf.?", "crf.a"], "FILE")
    assert list(kept) == ["bert.a", "CRF.c"] and list(dropped) == ["crf.a", "crf.b"]


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(UserError, match=r"FILE: --leave-out: no tensor is called 'rf\.\*'; name one of bert\.a, crf\.a"):
        left_out.split(tensors("bert.a", "crf.a"), ["crf.*", "rf.*"], "FILE")


@pytest.mark.parametrize(
    "extra, kept, wanted",
    [
        (["crf.start", "crf.end", "mask"], ["bert.a"], ["crf.*", "mask"]),
        (["bert.extra.a", "bert.extra.b", "bert.c"], ["bert.a.x"], ["bert.extra.*", "bert.c"]),
        (["a/crf/x", "a/crf/y"], ["a/b"], ["a/crf/*"]),
        (["a[0]", "b*.c", "d?"], ["e"], ["a[[]0]", "b[*].*", "d[?]"]),
    ],
)
def test_the_patterns_of_a_message_match_these_and_no_others(extra: list[str], kept: list[str], wanted: list[str]) -> None:
    found = left_out.options(extra, kept)
    assert found == wanted
    matched = [name for name in (*extra, *kept) if any(fnmatch.fnmatchcase(name, pattern) for pattern in found)]
    assert matched == extra
