"""What one process can tell of the coordinator's address before it meets the others."""

import pytest

from jaxenc.doctor import hosts
from jaxenc.doctor.findings import PROBLEM
from jaxenc.processes import addresses
from jaxenc.processes.cluster import Cluster

TWO = {"SLURM_NNODES": "2"}


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.1.1:1", "[::1]:1", "localhost:1"])
def test_loopback_is_known_by_address_and_by_name(address: str) -> None:
    assert addresses.is_loopback(address)


@pytest.mark.parametrize("address", ["10.0.0.1:1", "0.0.0.0:1", "[2001:db8::1]:1", "no.such.name.invalid:1"])
def test_other_addresses_are_not(address: str) -> None:
    assert not addresses.is_loopback(address) and not hosts.hint(address)


@pytest.mark.parametrize(
    "environment, variable",
    [
        (TWO, "SLURM_NNODES"),
        ({"SLURM_NNODES": "4", "SLURM_STEP_NUM_NODES": "2"}, "SLURM_STEP_NUM_NODES"),
        ({"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ({"TPU_WORKER_HOSTNAMES": "a,b"}, "TPU_WORKER_HOSTNAMES"),
        ({"SLURM_NNODES": "1"}, ""),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, ""),
        ({"WORLD_SIZE": "8"}, ""),
        ({"TPU_WORKER_HOSTNAMES": "a"}, ""),
        ({"SLURM_NNODES": "many"}, ""),
    ],
)
def test_a_launcher_says_whether_there_are_several_hosts(environment: dict[str, str], variable: str) -> None:
    assert hosts.told(environment) == variable


def test_a_coordinator_of_loopback_on_several_hosts_is_a_problem_before_anybody_waits() -> None:
    (said,) = hosts.before(Cluster("127.0.0.1:1234", 2, 0), TWO)
    assert said.level == PROBLEM and "SLURM_NNODES says that there are several" in said.what and "JAXENC_COORDINATOR=HOST:1234" in said.fix
    assert not hosts.before(Cluster("10.0.0.1:1234", 2, 0), TWO)
    assert not hosts.before(Cluster("127.0.0.1:1234", 2, 0), {})
    assert not hosts.before(Cluster(), TWO)
