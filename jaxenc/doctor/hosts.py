"""The hosts of the processes, and whether the coordinator's address is the same machine on all of them."""

from collections.abc import Sequence

from jaxenc.errors import UserError
from jaxenc.findings import PROBLEM, Finding, listed
from jaxenc.processes import addresses
from jaxenc.processes.cluster import COORDINATOR, Cluster

CHECK = "coordinator"


def hint(address: str) -> str:
    """What to add to advice where other hosts cannot reach this address."""
    if not addresses.is_loopback(address):
        return ""
    return f" ({addresses.split(address)[0]} is each host's own: name process 0's machine where there are several)"


def before(cluster: Cluster) -> list[Finding]:
    """What is wrong with the coordinator's address, as far as one process can tell before it joins the others."""
    if cluster.address:
        try:
            addresses.check_reachable(cluster.address, cluster.hosts, COORDINATOR)
        except UserError as error:
            return [Finding(PROBLEM, CHECK, error.what, error.fix)]
    return []


def judge(address: str, names: Sequence[str]) -> list[Finding]:
    """Whether the coordinator's address can be the same machine for all. names: the host of each process."""
    if len(set(names)) > 1 and addresses.is_loopback(address):
        what = f"the coordinator is at {address}, which every host takes for itself, and the processes are on {counted(names)}"
        return [Finding(PROBLEM, CHECK, what, _advice(address))]
    return []


def counted(names: Sequence[str]) -> str:
    """`1 host (a)` or `2 hosts (a, b)`."""
    hosts = list(dict.fromkeys(names))
    return f"{len(hosts)} host{'s' * (len(hosts) > 1)} ({listed(hosts)})"


def _advice(address: str) -> str:
    _, port = addresses.split(address)
    return f"set {COORDINATOR}=HOST:{port} in every process, with a name or address of process 0's machine that the other hosts reach"
