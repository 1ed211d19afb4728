"""Who comes before jax joins the processes: real sockets on loopback, one thread a process."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor

from jaxenc.doctor.roll_call import Call, call, judge
from jaxenc.findings import OK, PROBLEM, Finding
from jaxenc.processes.cluster import Cluster

LONG, SHORT = 30, 0.3


def free_address() -> str:
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{there.getsockname()[1]}"


def together(*told: tuple[int, int], seconds: float = LONG) -> list[list[Finding]]:
    """What processes find that were each told (number, count)."""
    address = free_address()
    with ThreadPoolExecutor(len(told)) as threads:
        clusters = [Cluster(address, count, index) for index, count in told]
        return list(threads.map(lambda one: call(one, seconds, "here"), clusters))


def test_all_processes_get_the_same_answer() -> None:
    found = together((0, 3), (1, 3), (2, 3))
    assert found == [[Finding(OK, "processes", "3 of 3 came, on 1 host (here)")]] * 3


def test_one_that_never_comes_is_named_within_the_limit_to_all() -> None:
    found = together((0, 3), (2, 3), seconds=1)
    assert found[0] == found[1]
    (said,) = found[0]
    assert said.level == PROBLEM and "2 of 3 came within 1 s, not process 1" in said.what
    assert "JAXENC_COORDINATOR=127.0.0.1:" in said.fix and "name process 0's machine where there are several" in said.fix


def test_processes_started_with_other_counts_are_named() -> None:
    found = together((0, 2), (1, 3))
    assert found[0] == found[1]
    assert "process 0 was started as one of 2, process 1 as one of 3" in found[0][0].what
    assert found[0][0].fix == "start all with one JAXENC_PROCESSES"


def test_two_processes_under_one_number_are_named() -> None:
    found = together((0, 2), (1, 2), (1, 2))
    assert found[0] == found[1] == found[2]
    assert "2 processes have the number 1, on here" in found[0][0].what and "JAXENC_PROCESS, from 0 to 1" in found[0][0].fix


def test_a_process_that_reaches_nobody_says_so_itself() -> None:
    (said,) = call(Cluster(free_address(), 2, 1), SHORT, "there")
    assert said.level == PROBLEM and "process 1 of 2 on there did not reach process 0" in said.what and "refused" in said.what


def test_a_stranger_is_no_process_and_no_coordinator() -> None:
    """What calls process 0 without being one of us is not counted; what answers in its place is named."""
    address = free_address()
    host, port = address.split(":")

    def stranger() -> None:
        for _ in range(200):
            try:
                with socket.create_connection((host, int(port)), 5) as there:
                    there.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    there.recv(1)
                return
            except ConnectionRefusedError:
                continue

    def refuse(other: socket.socket) -> None:
        with other.accept()[0] as there:
            there.sendall(b"HTTP/1.1 400\r\n")

    with ThreadPoolExecutor(1) as thread:
        thread.submit(stranger)
        (said,) = call(Cluster(address, 2, 0), 1, "here")
    assert "1 of 2 came" in said.what
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor(1) as thread:
        taken = Cluster(f"127.0.0.1:{other.getsockname()[1]}", 2, 1)
        answer = thread.submit(refuse, other)
        (said,) = call(taken, SHORT, "there")
        answer.result()
        (ours,) = call(Cluster(taken.address, 2, 0), SHORT, "here")
    assert said.level == PROBLEM and "did not reach process 0" in said.what
    assert "cannot listen" in ours.what and "a free port" in ours.fix


def test_a_coordinator_of_loopback_is_a_problem_on_several_hosts_alone() -> None:
    on = lambda *hosts: judge("127.0.0.1:1234", 60, [Call(index, len(hosts), host) for index, host in enumerate(hosts)])
    assert [one.level for one in on("a", "a")] == [OK]
    (said,) = on("a", "b")
    assert said.level == PROBLEM and "127.0.0.1:1234, which every host takes for itself" in said.what and "2 hosts (a, b)" in said.what
    assert "JAXENC_COORDINATOR=HOST:1234" in said.fix
    assert json.loads(json.dumps(vars(said))) == vars(said)
