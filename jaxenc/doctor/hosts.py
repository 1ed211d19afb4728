"""On which hosts the processes are, and whether the coordinator's address means the same machine on all of them."""

from collections.abc import Mapping, Sequence

from jaxenc.doctor.findings import PROBLEM, Finding, listed
from jaxenc.processes import addresses
from jaxenc.processes.cluster import COORDINATOR, Cluster

# (variable with a number, variable with the larger number that it has where there are several hosts)
PARTS = (
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("MPI_LOCALNRANKS", "PMI_SIZE"),
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
)
NODES = ("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "MEGASCALE_NUM_SLICES")
NAMES = "TPU_WORKER_HOSTNAMES"


def split(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an IPv6 address without its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def hint(address: str) -> str:
    """What to add to an advice where processes on other hosts cannot come to this address."""
    if not addresses.is_loopback(address):
        return ""
    return f" ({split(address)[0]} is each host's own: name process 0's machine where there are several)"


def told(environment: Mapping[str, str]) -> str:
    """The variable by which a launcher says that it started processes on several hosts, '' where none says so."""
    number = lambda name: int(text) if (text := environment.get(name, "")).isascii() and text.isdigit() else 0
    if nodes := next((name for name in NODES if number(name) > 1), ""):
        return nodes
    if len(environment.get(NAMES, "").split(",")) > 1:
        return NAMES
    return next((part for part, whole in PARTS if 0 < number(part) < number(whole)), "")


def before(cluster: Cluster, environment: Mapping[str, str]) -> list[Finding]:
    """What is wrong with the coordinator's address, as far as one process can tell before it meets the others."""
    variable = told(environment)
    if cluster.count > 1 and variable and addresses.is_loopback(cluster.address):
        what = f"the coordinator is at {cluster.address}, which every host takes for itself, and {variable} says that there are several"
        return [Finding(PROBLEM, "coordinator", what, _advice(cluster.address))]
    return []


def judge(address: str, names: Sequence[str]) -> list[Finding]:
    """Whether processes on the hosts with these names, one a process, can all mean the same machine by the coordinator's address."""
    if len(set(names)) > 1 and addresses.is_loopback(address):
        what = f"the coordinator is at {address}, which every host takes for itself, and the processes are on {counted(names)}"
        return [Finding(PROBLEM, "coordinator", what, _advice(address))]
    return []


def counted(names: Sequence[str]) -> str:
    """`1 host (a)` or `2 hosts (a, b)`."""
    hosts = list(dict.fromkeys(names))
    return f"{len(hosts)} host{'s' * (len(hosts) > 1)} ({listed(hosts)})"


def _advice(address: str) -> str:
    port = split(address)[1]
    return f"set {COORDINATOR}=HOST:{port} in every process, with a name or address of process 0's machine that the other hosts reach"
