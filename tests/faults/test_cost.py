"""What safety costs: checksums of a checkpoint of a gigabyte, and the time from a start to its first step. Full counts only."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import verify, write_checksums
from tests.faults.conftest import Table
from tests.faults.gang import ROOT
from tests.group import Process
from tests.training.conftest import make_data

pytestmark = pytest.mark.full
# Seconds to verify a gigabyte; seconds from a start to the first step, on two cores; the share of an interval that a save's checksums take
# where steps are as long as the table says.
PER_GIGABYTE, START, SHARE = 3.0, 15.0, 0.02


def test_checksums(tmp_path: Path, row: Table) -> None:
    """Random numbers, which no compression makes smaller, in arrays of 64 MB; read back from the memory of the system's file cache."""
    draw = np.random.default_rng(0)
    state = {"params": {f"w{number}": jnp.asarray(draw.standard_normal(1 << 24, np.float32)) for number in range(12)}}
    with Manager(tmp_path, CheckpointConfig()) as manager:
        started = time.monotonic()
        manager.save(1, state, {})
        manager.wait()
        whole = time.monotonic() - started
    size = sum(path.stat().st_size for path in (tmp_path / "1").rglob("*")) / 1e9
    assert size > 0.5
    seconds = {}
    for name, work in (("read", lambda: verify(tmp_path / "1")), ("written", lambda: write_checksums(tmp_path / "1", 1))):
        started = time.monotonic()
        assert not work()
        seconds[name] = (time.monotonic() - started) / size
    assert seconds["read"] <= PER_GIGABYTE
    interval = seconds["written"] / SHARE / CheckpointConfig().every
    told = (
        f"{size:.2f} GB verified in {seconds['read']:.2f} s per GB; {seconds['written']:.2f} of the {whole / size:.2f} s per GB of a save"
    )
    row("Verification", 1, f"{told}, in the background: 2 % of the default interval at {interval * 1000:.0f} ms a step for each GB")


def starts(tmp_path: Path, cache: Path) -> Iterator[float]:
    """Seconds from a start of `bert/tiny` to the row of its first step, on the machine's cores and one device."""
    data = make_data(tmp_path / "made", 1)
    ours = {
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1",
    }
    for number in range(4):
        workdir = tmp_path / f"run-{number}"
        command = ("-m", "jaxenc.cli.main", "pretrain", "--config", "bert/tiny", f"--config.data.path={data}", "--workdir", str(workdir))
        begun = time.monotonic()
        with Process([sys.executable, *command], stderr=subprocess.DEVNULL, env={**os.environ, **ours}) as process:
            while not ((workdir / "metrics.jsonl").exists() and (workdir / "metrics.jsonl").stat().st_size):
                assert process.poll() is None
                time.sleep(0.01)
            yield time.monotonic() - begun
            process.kill()


def test_from_start_to_first_step(tmp_path: Path, row: Table) -> None:
    """With JAX_COMPILATION_CACHE_DIR alone: the first start compiles, the others find what took a second or more."""
    first, *warm = starts(tmp_path, tmp_path / "cache")
    assert max(warm) <= START
    row("T17 start to first step, bert/tiny", len(warm), f"at most {max(warm):.1f} s once the first start, of {first:.1f} s, has compiled")
