import os
import socket
from unittest import mock

import jax
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.processes import gloo
from jaxenc.processes.barriers import barrier, from_primary, is_primary
from jaxenc.processes.cluster import Cluster, connect, from_environment
from jaxenc.sharding.partition import process_slots

THREE = {"JAXENC_COORDINATOR": "10.0.0.1:1234", "JAXENC_PROCESSES": "3", "JAXENC_PROCESS": "2"}


@pytest.mark.parametrize("batch, count", [(1, 1), (12, 1), (12, 3), (12, 12), (256, 8)])
def test_the_slots_of_all_processes_are_the_batch_in_order(batch: int, count: int) -> None:
    rows = np.arange(batch)
    parts = [rows[process_slots(batch, count, index)] for index in range(count)]
    assert len({len(part) for part in parts}) == 1
    np.testing.assert_array_equal(np.concatenate(parts), rows)


def test_a_batch_that_the_processes_cannot_share_is_one_line() -> None:
    with pytest.raises(UserError, match="train.batch is 10, which 4 processes"):
        process_slots(10, 4, 0)


def test_a_process_outside_the_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="process 4 of 4"):
        process_slots(8, 4, 4)


def test_a_single_process_is_primary() -> None:
    assert is_primary()


def test_the_environment_names_the_cluster() -> None:
    assert from_environment({**THREE, "SLURM_NTASKS": "9"}) == Cluster("10.0.0.1:1234", 3, 2, 90)
    assert from_environment({**THREE, "JAXENC_HEARTBEAT": "10"}).heartbeat == 10


def test_without_the_environment_there_is_one_process() -> None:
    assert from_environment({"SLURM_NTASKS": "9", "JAXENC_PROCESS": ""}) == Cluster("", 1, 0)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("JAXENC_PROCESS", "", "JAXENC_COORDINATOR and JAXENC_PROCESSES set without the rest"),
        ("JAXENC_PROCESS", "3", "JAXENC_PROCESS is 3 and JAXENC_PROCESSES is 3: processes are numbered from 0"),
        ("JAXENC_PROCESS", "-1", "JAXENC_PROCESS is '-1': it is a whole number"),
        ("JAXENC_PROCESSES", "two", "JAXENC_PROCESSES is 'two': it is a whole number"),
        ("JAXENC_PROCESSES", "0", "JAXENC_PROCESSES is 0"),
        ("JAXENC_COORDINATOR", "10.0.0.1", "JAXENC_COORDINATOR is '10.0.0.1': write HOST:PORT"),
        ("JAXENC_COORDINATOR", "10.0.0.1:99999", "JAXENC_COORDINATOR is '10.0.0.1:99999': write HOST:PORT"),
        ("JAXENC_HEARTBEAT", "0", "JAXENC_HEARTBEAT is 0: it is at least 1 second"),
    ],
)
def test_a_wrong_environment_is_one_line(name: str, value: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_environment({**THREE, name: value})


def test_two_processes_that_each_see_one_are_refused() -> None:
    """As with devices that cannot reach one another: each would train alone, into one directory."""
    refused = pytest.raises(UserError, match="process 1 sees 1 processes instead of 2")
    alone = (mock.patch.object(jax, "distributed"), mock.patch.object(jax.config, "update"), mock.patch.object(gloo, "listen_beside"))
    with mock.patch.dict(os.environ), alone[0], alone[1], alone[2], refused:
        connect(Cluster("127.0.0.1:1234", 2, 1))


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=f"JAXENC_COORDINATOR is '{address}', where process 0 cannot listen: "):
            connect(Cluster(address, 2, 0))


@pytest.mark.parametrize("host", ["203.0.113.1", "a..b"])
def test_an_address_of_another_machine_or_of_none_is_one_line(host: str) -> None:
    with pytest.raises(UserError, match="give an address of its machine and a free port"):
        connect(Cluster(f"{host}:1234", 2, 0))


def test_one_process_waits_for_nobody() -> None:
    connect(Cluster())
    barrier("never", 0)
    assert from_primary("value", lambda: ("as", "it is")) == ("as", "it is")
