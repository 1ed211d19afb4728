"""The tables of several shards, read and searched as one."""

import numpy as np
import pytest

from jaxenc.data.store import Concatenation


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("seed", range(20))
def test_a_search_is_that_of_numpy_on_the_whole_table(seed: int, side: str) -> None:
    """For every value from before the first item to after the last, some parts empty: the same numbers as int64 in one array give."""
    rng = np.random.default_rng(seed)
    parts = [np.sort(rng.integers(0, 30, rng.integers(0, 9))).astype(np.uint32) for _ in range(rng.integers(1, 5))]
    bases = np.cumsum([0, *[30] * (len(parts) - 1)])
    whole = np.concatenate([part.astype(np.int64) + base for part, base in zip(parts, bases, strict=True)])
    values = np.array([-(2**40), *range(-50, 30 * len(parts) + 10), 2**40])
    assert Concatenation(parts, bases).search(values, side).tolist() == np.searchsorted(whole, values, side).tolist()
