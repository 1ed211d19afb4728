"""Which of several processes a launcher says that this is."""

import dataclasses
from collections.abc import Mapping

# Ports for processes that derive one each for themselves: those above Linux's range for outgoing connections (32768 to 60999), so none of
# these takes one first. jax has the same 4,096 (jax/_src/clusters/slurm_cluster.py).
FIRST_PORT, PORTS = 61440, 4096


@dataclasses.dataclass(frozen=True)
class Place:
    """One of several processes. size, rank: the variables that say so; count, index: their values.

    address: HOST:PORT for process 0, '' where the launcher does not say enough. hosts: how many the processes are on, 0 where it does not
    say. jax_joins: jax finds the address by itself. local, beside: the index among the processes of this host, and how many these are.
    """

    size: str
    rank: str
    count: int
    index: int
    address: str = ""
    hosts: int = 0
    jax_joins: bool = False
    local: int = 0
    beside: int = 1


def numbered(environment: Mapping[str, str], size: str, rank: str) -> Place | None:
    """The place that two variables give, None where one is no number or the process is alone."""
    count, index = environment.get(size, ""), environment.get(rank, "")
    return Place(size, rank, int(count), int(index)) if is_number(count) and is_number(index) and int(count) > 1 else None


def whole(environment: Mapping[str, str], name: str, default: int) -> int:
    """The number in a variable of a launcher, `default` where it is not set or no whole number."""
    text = environment.get(name, "")
    return int(text) if is_number(text) else default


def is_number(text: str) -> bool:
    """Whether `text` is a whole number >= 0 in plain digits, at most ten of them."""
    return text.isascii() and text.isdigit() and len(text) <= 10


def port(number: int) -> int:
    """The port of the job with this number: 61440 to 65535, another one for each of 4,096 numbers in a row."""
    return FIRST_PORT + number % PORTS
