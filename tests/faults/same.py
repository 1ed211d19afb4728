"""Whether two runs are one: the rows they took, the numbers they wrote, the state they ended with."""

import json
from pathlib import Path

import jax
import numpy as np

from jaxenc.checkpoint import arrays

CLOCKS = ("seconds", "tokens_per_second", "mfu")


def rows(workdir: Path) -> dict[tuple[int, str], dict]:
    """{(step, split): its numbers}; a step written twice is an error."""
    read = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    found = {(row.pop("step"), row.pop("split")): row for row in read}
    assert len(found) == len(read)
    return {key: {name: value for name, value in row.items() if name not in CLOCKS} for key, row in found.items()}


def state(step_dir: Path) -> dict[str, np.ndarray]:
    """{path: array} of a checkpoint."""
    wanted = {path: jax.ShapeDtypeStruct(*kind) for path, kind in arrays.stored(step_dir / "state").items()}
    return {path: np.asarray(leaf) for path, leaf in arrays.read(step_dir / "state", wanted).items()}


def assert_same_tuning(one: Path, other: Path, steps: int) -> None:
    """AssertionError unless two work directories of `finetune` with seeds 0 and 1 agree bit for bit: rows, numbers, last states, answers to
    the dev set and which checkpoints are left."""
    for seed in ("seed_0", "seed_1"):
        assert_same_run(one / seed, other / seed, 0.0, steps)
        assert (one / seed / "dev.jsonl").read_bytes() == (other / seed / "dev.jsonl").read_bytes()
    left = lambda workdir: sorted(path.relative_to(workdir) for path in workdir.glob("seed_*/checkpoints/*"))
    assert left(one) == left(other)


def assert_same_run(one: Path, other: Path, bound: float, steps: int) -> float:
    """AssertionError unless every row of every step came once and in its slot, and every number is within `bound` (relative; 0: bit for
    bit, the last state too). Returns the largest relative difference of a number."""
    assert (one / "examples.log").read_text() == (other / "examples.log").read_text()
    first, second = rows(one), rows(other)
    assert first.keys() == second.keys() and [step for step, split in first if split == "train"] == list(range(1, steps + 1))
    furthest = 0.0
    for key, row in first.items():
        wanted, found = (np.array(list(numbers.values()), np.float64) for numbers in (row, second[key]))
        np.testing.assert_allclose(found, wanted, rtol=bound, err_msg=str(key))
        furthest = max(furthest, *(np.abs(found - wanted) / np.maximum(np.abs(wanted), np.finfo(np.float32).tiny)))
    if not bound:
        last, its = (state(workdir / "checkpoints" / str(steps)) for workdir in (one, other))
        assert last.keys() == its.keys()
        for path, leaf in last.items():
            assert leaf.dtype == its[path].dtype and leaf.tobytes() == its[path].tobytes(), path
    return furthest
