"""Gloo, through which the CPUs of several processes run collectives: where it listens, and what it prints."""

import os
import socket
import sys

from jaxenc.processes import addresses, private


def listen_beside(coordinator: str) -> None:
    """Has this process's CPU collectives listen at the address by which it reaches `coordinator`, HOST:PORT: on loopback at loopback.

    There is no authentication, as at the coordinator's port. Call it between `jax.distributed.initialize` and the first use of a device. At
    the first collective of a program Gloo waits for the other processes for 30 s, which nothing lengthens: a process that comes later ends
    all with an error, and `launch/local.sh` starts them again.
    """
    family, _, _, _, there = socket.getaddrinfo(*addresses.split(coordinator), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(there)  # sends nothing; chooses the local address
        private.listen_for_gloo(probe.getsockname()[0])


def be_quiet() -> None:
    """Makes file descriptor 1 the null device until the process ends: Gloo prints a line there for each group of processes, and has no
    setting for it. `sys.stdout` still writes to the standard output."""
    sys.stdout.flush()
    own, output = sys.stdout, os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    sys.stdout = os.fdopen(output, "w", buffering=1, encoding=own.encoding, errors=own.errors)
