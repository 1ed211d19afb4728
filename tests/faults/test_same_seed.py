"""T15: one seed is one run: bit for bit when it is repeated, and within float32's rounding however it is computed."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training import read
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests.faults.alone import Nano
from tests.faults.conftest import Table
from tests.faults.same import assert_same_run

# In the short suite every run that goes on bit for bit says it, as does test_loop of another mesh.
pytestmark = pytest.mark.full
STEPS = 20
# How the run differs: (mesh, fields of `train`, relative bound). Eight devices as data x fsdp x tensor: 8 x 1 x 1 without a change.
CHANGES = {
    "the same seed twice": (MeshConfig(), {}, 0.0),
    "mesh 8x1 and 4x2": (MeshConfig("fsdp_tp", tensor=2), {}, 1e-5),
    "remat": (MeshConfig(), {"remat": "block"}, 1e-5),
}


@pytest.fixture(scope="module")
def short(nanos: Callable[[str], Nano]) -> Run:
    run = nanos("mlm").run
    return dataclasses.replace(run, train=dataclasses.replace(run.train, steps=STEPS))


@pytest.fixture(scope="module")
def once(short: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("once")
    pretrain(short, workdir)
    return workdir


@pytest.mark.parametrize("change", CHANGES)
def test_one_seed_is_one_run(change: str, short: Run, once: Path, tmp_path: Path, row: Table) -> None:
    mesh, fields, bound = CHANGES[change]
    pretrain(dataclasses.replace(short, mesh=mesh, train=dataclasses.replace(short.train, **fields)), tmp_path / "run")
    assert_same_run(once, tmp_path / "run", bound, STEPS)
    row(f"T15 {change}", 1, f"every number within {bound:g}" if bound else "bit for bit")


def test_reading_ahead_changes_nothing(short: Run, once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Table) -> None:
    """Rows come from a thread that is two batches ahead; here from the loop itself."""
    monkeypatch.setattr(read.pipeline, "prefetch", lambda function, steps: (function(step) for step in steps))
    pretrain(short, tmp_path / "run")
    assert_same_run(once, tmp_path / "run", 0, STEPS)
    row("T15 batches read ahead and not", 1, "bit for bit")
