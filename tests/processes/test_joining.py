"""Two real processes on CPUs join by what a launcher's variables say, and by nothing else."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.group import Done, reserved, together
from tests.processes.metadata import metadata_server

SCRIPT = """
import os
import jax
import numpy as np
from jaxenc.processes import cluster, connection

if "GCE_METADATA_IP" in os.environ:
    os.environ.pop("TPU_SKIP_MDS_QUERY", None)  # jax sets it where there are no chips
found = cluster.from_environment(os.environ)
jax.config.update("jax_platforms", "cpu")
with connection.joined(found, lambda error: print(repr(error)) or 1):
    from jax.experimental.multihost_utils import process_allgather
    print(jax.process_index(), jax.process_count(), process_allgather(np.array(10 + jax.process_index())).tolist())
"""


def joined(ranks: list[dict[str, str]]) -> list[Done]:
    """The two processes, which start with these variables and two devices each."""
    flags = os.environ["XLA_FLAGS"].replace("device_count=8", "device_count=2")
    return together([((sys.executable, "-c", SCRIPT), {"XLA_FLAGS": flags, **own}) for own in ranks])


def assert_joined(done: list[Done]) -> None:
    assert [one.out for one in done] == [f"{rank} 2 [10, 11]\n" for rank in range(2)], done


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Variables with which jax believes that it sees TPUs, and listens on loopback at a port that is free. Those of a pod in which the
    tests run do not count."""
    for name in [name for name in os.environ if name.startswith(("TPU_", "MEGASCALE_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "libtpu.so").touch()
    with reserved() as address:
        yield {
            "JAX_FORCE_TPU_INIT": "1",
            "TPU_LIBRARY_PATH": str(tmp_path / "libtpu.so"),
            "JAX_PLATFORMS": "",
            "JAX_COORDINATOR_PORT": address.rpartition(":")[2],
            "JAX_COORDINATOR_BIND_ADDRESS": address,
        }


def test_tasks_of_slurm_join() -> None:
    """The job's number, and with it the port, is that of this test's process."""
    step = {
        "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2",
        "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NODEID": "0",
    }  # fmt: skip
    assert_joined(joined([{**step, "SLURM_PROCID": rank, "SLURM_LOCALID": rank} for rank in "01"]))


def test_ranks_of_open_mpi_join() -> None:
    job = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": f"prterun-host-{os.getpid()}@1"}
    assert_joined(joined([{**job, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank} for rank in "01"]))


def test_tpu_vms_join(pod: dict[str, str]) -> None:
    """By a metadata server each, as every worker has one. No worker has a TPU here: what joins are their CPUs."""
    told = {"worker-network-endpoints": "127.0.0.1,127.0.0.1", "tpu-env": "ZONE: 'a'\n"}
    with metadata_server({**told, "agent-worker-number": "0"}) as first, metadata_server({**told, "agent-worker-number": "1"}) as second:
        assert_joined(joined([{**pod, "GCE_METADATA_IP": server} for server in (first, second)]))


@pytest.mark.full
def test_slices_of_gke_join(pod: dict[str, str]) -> None:
    """Two slices of a worker each, by variables alone."""
    slices = {
        "TPU_WORKER_HOSTNAMES": "127.0.0.1", "TPU_WORKER_ID": "0", "MEGASCALE_NUM_SLICES": "2",
        "MEGASCALE_COORDINATOR_ADDRESS": "127.0.0.1:8080",
    }  # fmt: skip
    assert_joined(joined([{**pod, **slices, "MEGASCALE_SLICE_ID": rank} for rank in "01"]))
