"""The least time that a compiled step can take on a chip, by the chip's peak rates: a bound and not a measurement."""

import dataclasses
from collections.abc import Sequence

from jaxenc.hlo.collectives import Collective
from jaxenc.sharding.chips import Chip


@dataclasses.dataclass(frozen=True)
class Bound:
    """Seconds a step. compute: its floating-point operations at the chip's peak. memory: the bytes that its kernels read and write, at the
    bandwidth of the chip's memory. interconnect: the bytes that a chip sends inside its slice or host, at the sum of its links. network:
    the bytes that it sends to other slices. 0 where the chip's rate is not known."""

    compute: float
    memory: float
    interconnect: float
    network: float

    @property
    def step(self) -> float:
        """The largest of the four: the time where all of them overlap perfectly."""
        return max(dataclasses.astuple(self))

    @property
    def without_overlap(self) -> float:
        """The time where no communication overlaps with computation."""
        return max(self.compute, self.memory) + self.interconnect + self.network

    @property
    def limit(self) -> str:
        """The name of what takes longest."""
        return max(dataclasses.asdict(self), key=lambda name: getattr(self, name))


def bound(flops: float, traffic: float, found: Sequence[Collective], chip: Chip) -> Bound:
    """The bound of a step. flops, traffic (bytes): of one device, as `hlo.work` counts them; found: its collectives."""
    inside = sum(one.sent for one in found if not one.between)
    between = sum(one.sent for one in found if one.between)
    over = lambda amount, rate: amount / rate if rate else 0.0
    return Bound(over(flops, chip.flops), over(traffic, chip.bandwidth), over(inside, chip.interconnect), over(between, chip.network))
