"""Labels that do not overlap."""

from collections.abc import Mapping, Sequence


def merged(levels: Mapping[str, float]) -> dict[str, float]:
    """{label: value} of named levels, such as `left + right counts 4.38`; levels that agree to two decimals share a label."""
    names: dict[str, list[str]] = {}
    for name, value in levels.items():
        names.setdefault(f"{value:.2f}", []).append(name.replace("_", " + "))
    return {f"{', '.join(alike)} counts {number}": float(number) for number, alike in names.items()}


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """`places`, moved as little as needed until neighbours are `gap` apart, inside low to high where there is room; in the order given."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [min(max(places[i], low), high) for i in order]
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    if moved and moved[-1] > high:
        moved[-1] = high
        for i in range(len(moved) - 2, -1, -1):
            moved[i] = min(moved[i], moved[i + 1] - gap)
    out = [0.0] * len(places)
    for i, place in zip(order, moved, strict=True):
        out[i] = place
    return out
