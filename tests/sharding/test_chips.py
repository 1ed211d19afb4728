"""The one table of chips, under the names that libtpu and CUDA report."""

import pytest

from jaxenc.sharding import cards, topology
from jaxenc.sharding.chips import CHIPS, UNKNOWN, of_kind
from jaxenc.training import perf


@pytest.mark.parametrize(
    ("kind", "flops", "memory"),
    [
        ("TPU v4", 275e12, 30.75),
        ("TPU v5 lite", 197e12, 15.75),
        ("TPU v5", 459e12, 95.74),
        ("TPU v6 lite", 918e12, 31.25),
        ("TPU7x", 1153.5e12, 94.75),
        ("NVIDIA H100 80GB HBM3", 989e12, 80e9 / 2**30),
        ("NVIDIA H100 PCIe", 756e12, 80e9 / 2**30),
        ("NVIDIA H200", 989e12, 141e9 / 2**30),
        ("NVIDIA A100-SXM4-80GB", 312e12, 80e9 / 2**30),
        ("NVIDIA A100-PCIE-40GB", 312e12, 40e9 / 2**30),
    ],
)
def test_the_names_that_devices_report(kind: str, flops: float, memory: float) -> None:
    """A v5p calls itself "TPU v5" and is no v5e; every device of a TPU7x is half a chip. None of them has an MFU of 0."""
    chip = of_kind(kind)
    assert (chip.flops, chip.memory / 2**30) == (flops, pytest.approx(memory))
    assert perf.utilisation(chip.flops / 200, 100, kind, 1) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["cpu", "TPU v5litepod", "NVIDIA H1000", "TPU", ""])
def test_a_kind_that_is_not_known(kind: str) -> None:
    assert of_kind(kind) == UNKNOWN and perf.utilisation(1.0, 1.0, kind, 1) == 0


def test_every_number_is_plausible() -> None:
    """FLOPs outrun bytes by 100 to 700 to one, and memory outruns every link: a slip of a thousand would show."""
    for name, chip in CHIPS.items():
        assert 100 < chip.flops / chip.bandwidth < 700, name
        assert 2 < chip.bandwidth / chip.interconnect < 70 and chip.network <= chip.interconnect, name
        assert 14 * 2**30 <= chip.memory <= 192 * 2**30, name


def test_every_topology_is_of_a_chip_in_the_table() -> None:
    kinds = [kind for _, kind, _ in topology.TPUS.values()] + [card.kind for card in cards.CARDS.values()]
    assert len(set(kinds)) == len(kinds) and all(of_kind(kind).memory for kind in kinds)
