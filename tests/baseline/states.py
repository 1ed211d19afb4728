"""A state in few numbers, and which machine its bits belong to."""

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

import jax
import jaxlib
import numpy as np

from tests.baseline.inside import digest

Summary = dict[str, list]
# The same number added to the scores of all keys changes no softmax: the exact gradient of this bias is zero, and what it and its moments
# hold is rounding, which no two compilers share.
ROUNDING = re.compile(r"/attention/key/bias$")


def identity() -> dict[str, str]:
    """What decides the bits of a float on a CPU: the processor, jax with its compiler, and the compiler's flags."""
    return {
        "cpu": _cpu(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def _cpu() -> str:
    """The processor's name, family, model and stepping, and a digest of its instruction sets; elsewhere than on Linux what Python knows."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return f"{platform.machine()} {platform.processor()}"
    facts = dict(line.split(":", 1) for line in path.read_text().split("\n\n")[0].splitlines() if ":" in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    names = ("model name", "cpu family", "model", "stepping")
    flags = digest(np.array(sorted(facts.get("flags", facts.get("Features", "")).split())))
    return " ".join([*(facts.get(name, "-") for name in names), flags])


def summary(state: Mapping[str, np.ndarray]) -> Summary:
    """{path: [kind, digest, sum, norm, projection]}, in float64; the projection, on cos(0), cos(1), ..., tells elements apart."""
    return {path: [f"{array.dtype}{list(array.shape)}", digest(array), *_numbers(array)] for path, array in sorted(state.items())}


def _numbers(array: np.ndarray) -> tuple[float, float, float]:
    flat = array.astype(np.float64).ravel()
    return float(flat.sum()), float(np.sqrt(np.square(flat).sum())), float(flat @ np.cos(np.arange(flat.size)))


def changed(found: Summary, wanted: Summary) -> str:
    """What differs bit for bit, '' for nothing: arrays by name, and those that only have another name."""
    names = sorted(found.keys() ^ wanted.keys())
    if names:
        same = sorted(item[:2] for item in found.values()) == sorted(item[:2] for item in wanted.values())
        return f"{'the same arrays under other names' if same else 'other arrays'}: {', '.join(names)}"
    return ", ".join(path for path in wanted if found[path][:2] != wanted[path][:2])


def furthest(found: Summary, wanted: Summary) -> tuple[float, str]:
    """(largest difference, its path) of a sum, norm or projection, as a share of the leaf's norm, ROUNDING left out. AssertionError where
    paths, shapes or dtypes differ, and whole numbers must be equal."""
    assert {path: item[0] for path, item in found.items()} == {path: item[0] for path, item in wanted.items()}
    largest = (0.0, "none")
    for path, (kind, _, *numbers) in wanted.items():
        if not kind.startswith("float"):
            assert found[path] == wanted[path], path
        elif not ROUNDING.search(path):
            scale = max(numbers[1], np.finfo(np.float32).tiny)
            largest = max(largest, *((abs(a - b) / scale, path) for a, b in zip(found[path][2:], numbers, strict=True)))
    return largest
