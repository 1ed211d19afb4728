"""The least time of a step, against numbers worked out by hand."""

import pytest

from jaxenc.hlo.collectives import Collective
from jaxenc.sharding.chips import UNKNOWN, Chip
from jaxenc.training.roofline import bound

CHIP = Chip(flops=100e12, memory=0, bandwidth=1e12, interconnect=100e9, network=10e9)


def test_each_bound_is_the_work_by_its_rate() -> None:
    """1 TFLOP at 100 TFLOP/s is 10 ms, 20 GB at 1 TB/s 20 ms. An all-reduce of 1 GB over five sends 1.6 GB, a gather of 0.25 GB, twice,
    0.4 GB: 20 ms at 100 GB/s. Between two slices an all-reduce of 0.3 GB sends 0.3 GB: 30 ms at 10 GB/s."""
    five = tuple(range(5))
    found = [
        Collective("all-reduce", "f32", 1_000_000_000, five, False, 1),
        Collective("all-gather", "bf16", 250_000_000, five, False, 2),
        Collective("all-reduce", "f32", 300_000_000, (0, 1), True, 1),
    ]
    of_step = bound(1e12, 20e9, found, CHIP)
    assert (of_step.compute, of_step.memory) == (pytest.approx(0.010), pytest.approx(0.020))
    assert (of_step.interconnect, of_step.network) == (pytest.approx(0.020), pytest.approx(0.030))
    assert of_step.step == pytest.approx(0.030) and of_step.limit == "network"
    assert of_step.without_overlap == pytest.approx(0.070)


def test_a_rate_that_is_not_known_bounds_nothing() -> None:
    assert bound(1e12, 1e9, [], UNKNOWN).step == 0
