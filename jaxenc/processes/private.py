"""Private names of jax that several processes need: the store of its coordination service, and where Gloo listens.

No other file of jaxenc imports it. tests/processes/test_private.py fails when one of these moves and when jax has a public one.
"""

import functools
from typing import Any

# jax.distributed has `initialize`, `is_initialized` and `shutdown`, and nothing that reads or writes the store.
from jax._src import distributed, xla_bridge
from jax._src.lib import _jax


def store() -> Any:
    """The client of the coordination service's key-value store, None before `jax.distributed.initialize`."""
    return distributed.global_state.client


def coordinator() -> str:
    """HOST:PORT of the coordination service that this process has joined, also where jax found the address by itself."""
    return distributed.global_state.coordinator_address


def listen_for_gloo(host: str) -> None:
    """Has the CPU's collectives listen at `host`, an address of this machine. jax's own setting takes the address of the machine's name,
    which others may reach."""
    collectives = _jax.make_gloo_tcp_collectives(distributed_client=store(), hostname=host)
    client = functools.partial(xla_bridge.make_cpu_client, collectives=collectives)
    xla_bridge.register_backend_factory("cpu", client, priority=0, fail_quietly=False)
