"""Committed run directories go on as they did when they were recorded: bit for bit on that machine, elsewhere within float32's rounding."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.checkpoint import migrate
from tests.baseline import runs, states
from tests.faults import same

# Relative, for numbers; for a leaf of the state, of its norm. See README.md for what was measured.
NUMBERS, STATE = 1e-6, 1e-5
# The format of the checkpoints (`migrate`) whose paths state.json has.
RECORDED = 2
AGAIN = "if this is meant, python -m tests.baseline.make runs (README.md says what else)"


@pytest.mark.slow
@pytest.mark.parametrize("name", runs.RESUMED)
def test_a_committed_run_goes_on_as_it_did(name: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """20 steps: rows, every number of every step and of the evaluation, and the whole state after the last."""
    recorded = {key: value for key, value in runs.read(runs.FACTS).items() if key in states.identity()}
    exact = recorded == states.identity()
    workdir, wanted = runs.resume(name, tmp_path), runs.RUNS / name / "next"
    end = max(int(path.name) for path in (workdir / "checkpoints").iterdir())
    assert end == runs.stopped_at(name) + 20
    found = states.summary(same.state(workdir / "checkpoints" / str(end)))
    state = {migrate.path(path, RECORDED): item for path, item in runs.read(wanted / "state.json").items()}

    numbers = same.assert_same_run(wanted, workdir, NUMBERS, end)
    leaf, path = states.furthest(found, state)
    how = "bit for bit" if exact else "within the bounds, as it was recorded elsewhere"
    said = f"compared {how}: numbers {numbers:.1e} and leaves {leaf:.1e} apart at most ({path})"
    print(f"{name}: {said}; recorded on {json.dumps(recorded)}")
    record_property("compared", said)
    if exact:
        assert numbers == 0, AGAIN
        assert states.changed(found, state) == "", AGAIN
    assert leaf <= STATE, f"{path}: {leaf:.1e}; {AGAIN}"
