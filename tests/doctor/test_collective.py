"""The all-reduce: an exact sum over all devices."""

import threading

import jax
import numpy as np
import pytest

from jaxenc.doctor import collective
from jaxenc.findings import OK, PROBLEM


def test_the_sum_over_all_devices_is_exact_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collective, "SIZE", 1000)
    said = collective.check(120)
    assert said.level == OK and f"over {jax.device_count()} devices: exact, " in said.what and said.what.endswith(" ms")


@pytest.mark.parametrize("wrong", [1, -8, 2**20])
def test_one_wrong_number_is_a_problem(wrong: int) -> None:
    """As one device that adds nothing, or another's share, would make it."""
    sums = (8 * 9 // 2 + 8 * np.arange(100)).astype(np.int32)
    assert collective.judge(sums, 8, 0.001).level == OK
    sums[7] += wrong
    said = collective.judge(sums, 8, 0.001)
    assert said.level == PROBLEM and "1 of 100 sums over 8 devices are wrong" in said.what


def test_one_that_fails_and_one_that_hangs_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(collective, "_reduced", lambda: release.wait(60))
    said = collective.check(0.05)
    release.set()
    assert said.level == PROBLEM and said.stuck and "did not end in 0.05 s" in said.what

    def fail() -> None:
        raise RuntimeError("NCCL error\nmore")

    monkeypatch.setattr(collective, "_reduced", fail)
    said = collective.check(60)
    assert said.level == PROBLEM and not said.stuck and said.what == "failed (NCCL error)"
