"""What one process can tell of the coordinator's address before it meets the others."""

import pytest

from jaxenc.doctor import hosts
from jaxenc.findings import PROBLEM
from jaxenc.processes.cluster import Cluster, from_environment


@pytest.mark.parametrize("address, hint", [("127.0.0.1:1", "127.0.0.1 is each host's own"), ("10.0.0.1:1", "")])
def test_advice_mentions_several_hosts_where_the_address_is_loopback(address: str, hint: str) -> None:
    said = hosts.hint(address)
    assert hint in said if hint else said == ""


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
