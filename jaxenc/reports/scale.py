"""Axes: from numbers to places, and the ticks between."""

import dataclasses
import math
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`; log: logarithmic, and both are above 0."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """The place of a finite value, 0 at `low` and 1 at `high`; on a logarithmic axis, where it is not above 0, far below."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return -1.0
        return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))

    def ticks(self, most: int = 6, whole: bool = False) -> list[float]:
        """Round numbers on the axis, `most` at most; whole: whole numbers only."""
        found = _powers(self, most) if self.log else _steps(self.low, self.high, most)
        return [tick for tick in found if tick == round(tick)] if whole else found


def fitted(values: Iterable[float], log: bool = False, margin: float = 0.05) -> Scale:
    """The axis that just holds the finite values, with `margin` of it free at both ends; log: logarithmic, where all are above 0 and they
    span a factor of 10 or more."""
    finite = [value for value in values if math.isfinite(value) and abs(value) < 1e300]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if log and low > 0 and high / 10 >= low:
        # Below that there is nothing to read, and its logarithm takes all the room.
        low = max(low, high * 1e-12)
        room = (high / low) ** margin
        return Scale(low / room, high * room, True)
    # Numbers that hardly differ have no round number between them.
    wide = high - low > 1e-9 * max(abs(low), abs(high)) and high - low > 1e-300
    room = (high - low) * margin if wide else max(abs(low), abs(high)) * margin
    room = room if room > 1e-300 else 1.0
    return Scale(low - room, high + room)


def _steps(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of 10."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for factor in (1, 2, 5, 10, 20):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [i * step for i in range(first, last + 1)]
    raise AssertionError("20 times the power of 10 below a part of the range is more than that part")


def _powers(scale: Scale, most: int) -> list[float]:
    """Powers of 10 with 2 and 5 times them, or fewer of them where they would be more than `most`."""
    low, high = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    inside = lambda values: [value for value in values if scale.low <= value <= scale.high]
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = inside(factor * 10.0**power for power in range(low, high + 1) for factor in factors)
        if len(found) <= most:
            return found
    powers = inside(10.0**power for power in range(low, high + 1))
    return powers[:: -(-len(powers) // most)]


def texts(ticks: Sequence[float], percent: bool = False) -> list[str]:
    """A text for each tick, as short as tells them apart: 0.25, 12k, 1.5M, 2e-4."""
    if percent:
        return [f"{text}%" for text in _alike([100 * tick for tick in ticks])]
    largest = max((abs(tick) for tick in ticks), default=0.0)
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= largest < 1e16:
            size = 1e3 if unit == "k" else size
            return [
                "0" if tick == 0 else f"{text}{unit}" for tick, text in zip(ticks, _alike([tick / size for tick in ticks]), strict=True)
            ]
    return _alike(ticks)


def _alike(values: Sequence[float]) -> list[str]:
    """`_plain` of each, with as many decimals as the one that has most; powers of 10, which need different numbers of them, as they are."""
    plain = [_plain(value) for value in values]
    if any("e" in text for text in plain) or max(map(abs, values), default=0) > 1000 * min(map(abs, filter(None, values)), default=1):
        return plain
    most = max((len(text.partition(".")[2]) for text in plain), default=0)
    return [f"{value:.{most}f}" if value else "0" for value in values]


def _plain(value: float) -> str:
    """Four digits at most, without an exponent of two digits."""
    text = f"{value:.4g}"
    return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-0", "0") if "e" in text else text
