"""Which of several processes this one is, as a launcher says in its environment."""

import dataclasses
from collections.abc import Mapping

# Ports that every process derives from the job's number: above Linux's range for outgoing connections (32768 to 60999), so that no
# connection takes one first. jax has the same 4,096 (jax/_src/clusters/slurm_cluster.py).
FIRST_PORT, PORTS = 61440, 4096


@dataclasses.dataclass(frozen=True)
class Rank:
    """One of several processes. count: how many there are; index: which this is; counted_by, numbered_by: the variables that say so.

    address: HOST:PORT of process 0, '' where the launcher does not say enough. hosts: the number of hosts, 0 where it is not known.
    jax_joins: jax finds the address by itself. local_index, local_count: the same as index and count among the processes of this host.
    """

    counted_by: str
    numbered_by: str
    count: int
    index: int
    address: str = ""
    hosts: int = 0
    jax_joins: bool = False
    local_index: int = 0
    local_count: int = 1


def from_variables(environment: Mapping[str, str], count: str, index: str) -> Rank | None:
    """The rank that the variables `count` and `index` give, None where one is not a number or there is one process."""
    processes, own = environment.get(count, ""), environment.get(index, "")
    return Rank(count, index, int(processes), int(own)) if is_number(processes) and is_number(own) and int(processes) > 1 else None


def number(environment: Mapping[str, str], name: str, default: int) -> int:
    """The whole number in a variable of a launcher, `default` where it is not set or not one."""
    text = environment.get(name, "")
    return int(text) if is_number(text) else default


def is_number(text: str) -> bool:
    """Whether `text` is a whole number >= 0 in plain digits, at most ten of them."""
    return text.isascii() and text.isdigit() and len(text) <= 10


def port(job: int) -> int:
    """The port of a job, 61440 to 65535: those of 4,096 jobs in a row differ."""
    return FIRST_PORT + job % PORTS
