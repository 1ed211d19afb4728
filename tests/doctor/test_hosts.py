"""What one process can tell of the coordinator's address before it meets the others."""

import pytest

from jaxenc.doctor import hosts
from jaxenc.doctor.findings import PROBLEM
from jaxenc.processes import addresses
from jaxenc.processes.cluster import Cluster, from_environment


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.1.1:1", "[::1]:1", "localhost:1"])
def test_loopback_is_known_by_address_and_by_name(address: str) -> None:
    assert addresses.is_loopback(address)


@pytest.mark.parametrize("address", ["10.0.0.1:1", "0.0.0.0:1", "[2001:db8::1]:1", "no.such.name.invalid:1"])
def test_other_addresses_are_not(address: str) -> None:
    assert not addresses.is_loopback(address) and not hosts.hint(address)


def test_a_coordinator_of_loopback_on_several_hosts_is_a_problem_before_anybody_waits() -> None:
    """The number of hosts is what the launcher says: here Slurm, with two tasks on two nodes."""
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0", "SLURM_STEP_NODELIST": "a,b"}
    (said,) = hosts.before(from_environment({**step, "JAXENC_COORDINATOR": "127.0.0.1:1234"}))
    assert (said.level, said.check) == (PROBLEM, "coordinator") and "127.0.0.1:1234, is this host's own loopback" in said.what
    assert "set JAXENC_COORDINATOR=HOST:PORT" in said.fix
    assert not hosts.before(Cluster("10.0.0.1:1234", 2, 0, hosts=2))
    assert not hosts.before(Cluster("127.0.0.1:1234", 2, 0, hosts=1))
    assert not hosts.before(Cluster("127.0.0.1:1234", 2, 0))
    assert not hosts.before(Cluster("", 2, 0, hosts=2, jax_joins=True)), "a TPU slice, whose address jax finds"
    assert not hosts.before(Cluster())
