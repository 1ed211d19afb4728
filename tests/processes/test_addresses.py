"""Addresses of the coordinator: their form, and whether they are loopback."""

import pytest

from jaxenc.processes import addresses


@pytest.mark.parametrize("address, parts", [("10.0.0.1:80", ("10.0.0.1", 80)), ("[2001:db8::1]:1234", ("2001:db8::1", 1234))])
def test_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert addresses.is_address(address) and addresses.split(address) == parts


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "host:0", "host:65536", "host:8o"])
def test_what_is_no_address(text: str) -> None:
    assert not addresses.is_address(text) and not addresses.is_named_loopback(text)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.1.1:1", "[::1]:1", "localhost:1"])
def test_loopback_is_known_by_address_and_by_name(address: str) -> None:
    assert addresses.is_loopback(address) and addresses.is_named_loopback(address)


@pytest.mark.parametrize("address", ["10.0.0.1:1", "0.0.0.0:1", "[2001:db8::1]:1", "no.such.name.invalid:1"])
def test_other_addresses_are_not_loopback(address: str) -> None:
    assert not addresses.is_loopback(address) and not addresses.is_named_loopback(address)
