"""Where the CPUs of several processes talk to one another."""

import functools
import os
import socket
import sys

# The only way to say where Gloo listens: jax's own setting takes the address of the machine's name, which others may reach.
from jax._src import distributed, xla_bridge
from jax._src.lib import _jax


def listen_beside(coordinator: str) -> None:
    """Has this process's CPU collectives listen at the address by which it reaches `coordinator`, HOST:PORT: on loopback at loopback.

    There is no authentication, as at the coordinator's port. Call it between `jax.distributed.initialize` and the first use of a device. At
    the first collective of a program Gloo waits for the other processes for 30 s, which nothing lengthens: a process that comes later ends
    all with an error, and `launch/local.sh` starts them again.
    """
    host, _, port = coordinator.rpartition(":")
    kind, _, _, _, there = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as way:
        way.connect(there)  # sends nothing
        own = way.getsockname()[0]
    collectives = _jax.make_gloo_tcp_collectives(distributed_client=distributed.global_state.client, hostname=own)
    client = functools.partial(xla_bridge.make_cpu_client, collectives=collectives)
    xla_bridge.register_backend_factory("cpu", client, priority=0, fail_quietly=False)


def be_quiet() -> None:
    """Makes file descriptor 1 the null device until the process ends: Gloo prints a line there for each group of processes, and has no
    setting for it. `sys.stdout` still writes to the standard output."""
    sys.stdout.flush()
    own, output = sys.stdout, os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    sys.stdout = os.fdopen(output, "w", buffering=1, encoding=own.encoding, errors=own.errors)
