"""The address at which process 0 listens: its form, whether the port is free, and whether another host can reach it."""

import contextlib
import ipaddress
import re
import socket

from jaxenc.errors import UserError


def is_address(text: str) -> bool:
    """Whether `text` is HOST:PORT with a port from 1 to 65535; an IPv6 address is in brackets, without which gRPC looks for a name."""
    host, _, port = text.rpartition(":")
    named = re.fullmatch(r"[\w.-]+|\[[\da-fA-F:.]+(%[\w.-]+)?\]", host, re.ASCII)
    return bool(named and re.fullmatch(r"\d{1,5}", port, re.ASCII)) and 0 < int(port) < 1 << 16


def split(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an IPv6 address without its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_named_loopback(address: str) -> bool:
    """Whether HOST:PORT is a loopback address or `localhost`; resolves no name."""
    if not is_address(address):
        return False
    host, _ = split(address)
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def is_loopback(address: str) -> bool:
    """Whether HOST:PORT resolves to this machine's loopback, as a host's own name does where /etc/hosts has it at 127.0.1.1; False where
    the name is unknown."""
    found = _resolved(address)
    return bool(found) and all(ipaddress.ip_address(where[0].partition("%")[0]).is_loopback for _, where in found)


def check_free(address: str, variable: str) -> None:
    """Raises UserError where this process cannot listen at HOST:PORT, which `variable` sets: jax's service would end the process with a
    segmentation fault."""
    for kind, where in _resolved(address):
        with contextlib.suppress(OSError), socket.socket(kind, socket.SOCK_STREAM) as there:
            there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            there.bind(where)
            return
    fix = f"give an address of its machine and a free port in {variable}"
    raise UserError(f"the address of process 0 is {address!r}, where process 0 cannot listen", fix=fix)


def check_reachable(address: str, hosts: int, variable: str) -> None:
    """Raises UserError where the processes are on several `hosts` and HOST:PORT is loopback, so that each would call its own host in vain
    (github.com/ROCm/MAD/pull/228)."""
    if hosts > 1 and is_loopback(address):
        what = f"the address of process 0, {address}, is this host's own loopback, and the processes are on several hosts"
        raise UserError(what, fix=f"set {variable}=HOST:PORT everywhere: an address of process 0's machine that the others reach")


def _resolved(address: str) -> list[tuple[int, tuple]]:
    """(family, address) of every socket address that HOST:PORT stands for, [] where the name is unknown."""
    with contextlib.suppress(OSError, UnicodeError):
        return [(family, where) for family, _, _, _, where in socket.getaddrinfo(*split(address), type=socket.SOCK_STREAM)]
    return []
