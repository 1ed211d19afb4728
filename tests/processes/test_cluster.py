import contextlib
import socket
import threading
from unittest import mock

import jax
import numpy as np
import pytest

from jaxenc.errors import Absent, UserError
from jaxenc.processes import addresses, barriers, connection, gloo, private
from jaxenc.processes.barriers import ErrorOfAll, barrier, from_primary, is_primary
from jaxenc.processes.cluster import Cluster, from_environment, must_be_alone
from jaxenc.processes.connection import connect
from jaxenc.sharding.partition import process_slots
from tests.processes.service import Service

THREE = {"JAXENC_COORDINATOR": "10.0.0.1:1234", "JAXENC_PROCESSES": "3", "JAXENC_PROCESS": "2"}


# What Slurm tells a batch script, which is task 0 of a step that is not srun's, and a task that srun started.
SCRIPT = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
SRUN = {**SCRIPT, "SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n[1-4]", "SLURM_STEP_NUM_TASKS": "4"}


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
    assert from_environment({**THREE, "SLURM_NTASKS": "9"}) == Cluster("10.0.0.1:1234", 3, 2, meet=1800)


def test_time_limits_are_variables() -> None:
    limits = lambda cluster: (cluster.meet, cluster.heartbeat, cluster.leave)
    assert limits(from_environment({**THREE, "JAXENC_MEET": "7", "JAXENC_HEARTBEAT": "10", "JAXENC_LEAVE": "8"})) == (7, 10, 8)
    assert limits(from_environment(THREE)) == (1800, 90, 30)
    for near in ("127.0.0.1:1234", "localhost:1234", "[::1]:1234"):
        assert limits(from_environment({**THREE, "JAXENC_COORDINATOR": near})) == (300, 90, 30)


def test_without_the_environment_there_is_one_process() -> None:
    assert from_environment({"SLURM_NTASKS": "9", "JAXENC_PROCESS": ""}) == Cluster("", 1, 0)


@pytest.mark.parametrize(
    "given, size, rank",
    [
        ({"SLURM_NTASKS": "2", "SLURM_PROCID": "0"}, "SLURM_NTASKS", "SLURM_PROCID"),
        ({**SRUN, "SLURM_STEP_NODELIST": ""}, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
        ({**SRUN, "SLURM_STEP_NODELIST": "n[1-"}, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
        ({**SRUN, "WORLD_SIZE": "16", "RANK": "12"}, "WORLD_SIZE", "RANK"),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
        ({"PMI_SIZE": "2", "PMI_RANK": "1", **SCRIPT}, "PMI_SIZE", "PMI_RANK"),
        ({"MV2_COMM_WORLD_SIZE": "2", "MV2_COMM_WORLD_RANK": "0"}, "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
        ({"JSM_NAMESPACE_SIZE": "2", "JSM_NAMESPACE_RANK": "1"}, "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),
        ({"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}, "WORLD_SIZE", "RANK"),
        ({"FLUX_JOB_SIZE": "2", "FLUX_TASK_RANK": "1"}, "FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
        ({"HOROVOD_SIZE": "2", "HOROVOD_RANK": "1", "HOROVOD_LOCAL_RANK": "1"}, "HOROVOD_SIZE", "HOROVOD_RANK"),
        ({**SRUN, "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1", "WORLD_SIZE": "2", "RANK": "1"}, "WORLD_SIZE", "RANK"),
        ({"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"}, "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
    ],
)  # fmt: skip
def test_r34_one_of_several_is_refused_with_the_variables_that_join_it(given: dict[str, str], size: str, rank: str) -> None:
    """The advice works: the shell puts the launcher's numbers in, and JAXENC_PROCESSES=1 says that it is alone."""
    with pytest.raises(UserError) as refused:
        from_environment(given)
    said = str(refused.value)
    join = {"JAXENC_COORDINATOR": "10.0.0.1:1234", "JAXENC_PROCESSES": given[size], "JAXENC_PROCESS": given[rank]}
    assert said.startswith(f"{size} is {given[size]} and {rank} is {given[rank]}: one of {given[size]} processes")
    assert f"JAXENC_COORDINATOR=HOST:PORT of process 0, JAXENC_PROCESSES=${size} and JAXENC_PROCESS=${rank} to join" in said
    assert from_environment({**given, **join}) == Cluster("10.0.0.1:1234", int(given[size]), int(given[rank]), meet=1800)
    assert from_environment({**given, "JAXENC_PROCESSES": "1"}) == Cluster()


@pytest.mark.parametrize(
    "given",
    [
        SCRIPT,
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"},
        {"SLURM_NTASKS": "4"},
        {**SRUN, "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"},
        {**SRUN, "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "4294967290"},
        {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"},
        {"WORLD_SIZE": "8"},
        {"WORLD_SIZE": "large", "RANK": "0"},
    ],
    ids=["batch script", "salloc", "tasks alone", "srun -n1", "interactive step", "mpirun -n 1", "a size alone", "no number"],
)
def test_r34_one_that_is_alone_is_not_refused(given: dict[str, str]) -> None:
    assert from_environment(given) == Cluster()


def test_r34_what_runs_in_one_process_refuses_to_be_one_of_several() -> None:
    must_be_alone({}, "jaxenc evaluate")
    must_be_alone({"JAXENC_PROCESSES": "1"}, "jaxenc evaluate")
    with pytest.raises(UserError, match="JAXENC_PROCESSES is 3: jaxenc evaluate runs in one process; start it once"):
        must_be_alone(THREE, "jaxenc evaluate")
    with pytest.raises(UserError, match="SLURM_STEP_NUM_TASKS is 4: jaxenc evaluate runs in one process; start it once"):
        must_be_alone(SRUN, "jaxenc evaluate")


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("JAXENC_PROCESS", "", "JAXENC_COORDINATOR and JAXENC_PROCESSES set without the rest"),
        ("JAXENC_PROCESS", "3", "JAXENC_PROCESS is 3 and JAXENC_PROCESSES is 3; number processes from 0"),
        ("JAXENC_PROCESS", "-1", "JAXENC_PROCESS is '-1'; it is a whole number"),
        ("JAXENC_PROCESSES", "two", "JAXENC_PROCESSES is 'two'; it is a whole number"),
        ("JAXENC_PROCESSES", "0", "JAXENC_PROCESSES is 0"),
        ("JAXENC_COORDINATOR", "10.0.0.1", "JAXENC_COORDINATOR is '10.0.0.1'; write HOST:PORT"),
        ("JAXENC_COORDINATOR", "10.0.0.1:99999", "JAXENC_COORDINATOR is '10.0.0.1:99999'; write HOST:PORT"),
        ("JAXENC_COORDINATOR", "http://10.0.0.1:80", "JAXENC_COORDINATOR is 'http://10.0.0.1:80'; write HOST:PORT"),
        ("JAXENC_COORDINATOR", "::1:1234", "JAXENC_COORDINATOR is '::1:1234'; write HOST:PORT of process 0, an IPv6 address in brackets"),
        ("JAXENC_PROCESSES", "9" * 5000, "it is a whole number up to 2147483647"),
        ("JAXENC_MEET", "3000000000", "JAXENC_MEET is '3000000000'; it is a whole number up to 2147483647"),
        ("JAXENC_HEARTBEAT", "0", "JAXENC_HEARTBEAT is 0; it is at least 1 second"),
        ("JAXENC_MEET", "0", "JAXENC_MEET is 0; it is at least 1 second"),
        ("JAXENC_LEAVE", "soon", "JAXENC_LEAVE is 'soon'; it is a whole number"),
    ],
)
def test_a_wrong_environment_is_one_line(name: str, value: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_environment({**THREE, name: value})


@pytest.mark.usefixtures("jax_joins_nobody")
def test_two_processes_that_each_see_one_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with devices that cannot reach one another: each would train alone, into one directory."""
    refused = pytest.raises(UserError, match="process 1 sees 1 processes instead of 2")
    monkeypatch.setattr(jax, "process_count", lambda: 1)
    with refused:
        connect(Cluster("127.0.0.1:1234", 2, 1))


@pytest.mark.usefixtures("jax_joins_nobody")
def test_a_process_that_was_told_another_count_is_refused() -> None:
    with pytest.raises(
        UserError, match="process 1 was started as one of 3 and process 0 as one of 2 .JAXENC_PROCESSES.; start all with one"
    ):
        connect(Cluster("127.0.0.1:1234", 3, 1))


@pytest.mark.usefixtures("jax_joins_nobody")
def test_a_process_says_that_it_waits_and_that_its_time_is_over(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """jax ends it then, after minutes without a word, with a stack of C++."""
    joining = lambda: next(thread for thread in threading.enumerate() if thread.name == "joining")
    monkeypatch.setattr(barriers, "TELL", 0.6)
    monkeypatch.setattr(jax.distributed, "initialize", lambda *_, **limits: joining().join())
    connect(Cluster("10.0.0.1:1234", 2, 1, meet=2))
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "process 1 of 2 waits at 10.0.0.1:1234 for all to join: 1 of 2 s"
    assert last.startswith(
        "process 1 of 2 at 10.0.0.1:1234: not all processes have come; start every process, each with this address, within"
    )


@pytest.fixture
def jax_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """`connect` joins nothing, process 0 was started as one of two, and jax sees process 1 of two."""
    service = Service()
    service.key_value_set("jaxenc/count", "2")
    for owner, name in ((jax, "distributed"), (jax.config, "update"), (gloo, "listen_beside")):
        monkeypatch.setattr(owner, name, mock.Mock())
    monkeypatch.setattr(private, "store", lambda: service)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(jax, "process_index", lambda: 1)


@pytest.mark.usefixtures("jax_joins_nobody")
def test_a_process_that_jax_numbers_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "process_index", lambda: 0)
    with pytest.raises(UserError, match="process 1 of 2 by SLURM_PROCID is process 0 by its devices; number processes as jax does"):
        connect(Cluster("10.0.0.1:1234", 2, 1, numbered_by="SLURM_PROCID"))


@pytest.mark.usefixtures("jax_joins_nobody")
def test_processes_of_two_hosts_that_met_on_loopback_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As through a port that is forwarded: the collectives would not get through."""
    refused = pytest.raises(UserError, match="process 0 is on n0 and process 1 on n1, and they met at 127.0.0.1:1, a loopback address; set")
    for index, host, outcome in ((0, "n0", contextlib.nullcontext()), (1, "n0", contextlib.nullcontext()), (1, "n1", refused)):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        monkeypatch.setattr(addresses, "check_free", lambda *_: None)
        with outcome:
            connect(Cluster("127.0.0.1:1", 2, index))


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=f"the address of process 0 is '{address}', where process 0 cannot listen; "):
            connect(Cluster(address, 2, 0))


@pytest.mark.parametrize("host", ["203.0.113.1", "a..b"])
def test_an_address_of_another_machine_or_of_none_is_one_line(host: str) -> None:
    with pytest.raises(UserError, match="give an address of its machine and a free port"):
        connect(Cluster(f"{host}:1234", 2, 0))


def test_one_process_waits_for_nobody() -> None:
    connect(Cluster())
    barrier("never", 0)
    assert from_primary("value", lambda: ("as", "it is")) == ("as", "it is")


def test_all_finish_before_one_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that leaves while a device of another connects to one of its own would leave that one waiting for ever. Who does not come
    to the end in time ends the others, which say so."""
    did: list[object] = []

    def too_late(seconds: float) -> None:
        raise Absent("the end: process 0 did not come")

    for name in ("connect", "close", "leave"):
        monkeypatch.setattr(connection, name, lambda *given, name=name: did.append((name, *given)))
    monkeypatch.setattr(gloo, "be_quiet", lambda: None)
    two = Cluster("127.0.0.1:1", 2, 1, leave=7)
    for finish in (lambda seconds: did.append(("finish", seconds)), too_late):
        monkeypatch.setattr(connection, "finish", finish)
        with connection.joined(two, lambda error: did.append(str(error)) or 1):
            did.append("block")
    first = [("connect", two), "block", ("finish", 7), ("close",)]
    # `leave` ends the process where it is not replaced.
    assert did == [*first, ("connect", two), "block", "the end: process 0 did not come", ("leave", 1), ("close",)]


def test_an_error_of_process_0_is_the_error_of_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both raise it, and process 1 makes nothing itself."""
    service = Service()
    monkeypatch.setattr(private, "store", lambda: service)
    monkeypatch.setattr(jax, "process_count", lambda: 2)

    def fail() -> None:
        raise UserError("no such folder")

    for index, make in ((0, fail), (1, lambda: pytest.fail("process 1 asks process 0"))):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        with pytest.raises(ErrorOfAll, match="^no such folder$"):
            from_primary("start", make)
