"""No process that a test starts outlives it, and its error says what each process printed."""

import os
import socket
import subprocess
import sys

import pytest

from tests.group import Process, reserved, together

HANGS = (sys.executable, "-c", "import sys, time; print('out', flush=True); print('err', file=sys.stderr, flush=True); time.sleep(600)")
ENDS = (sys.executable, "-c", "import os; print('done', os.environ['NAME'])")


def test_processes_that_end_say_what_they_say() -> None:
    first, second = together([(ENDS, {"NAME": "a"}), (ENDS, {"NAME": "b"})], limit=60)
    assert (first.code, first.out, second.out, second.err) == (0, "done a\n", "done b\n", "")


def test_one_that_hangs_is_killed_and_all_is_reported() -> None:
    with pytest.raises(AssertionError, match="process 0: 0\ndone a\n(.|\n)*process 1: still ran\nout\nerr\n"):
        together([(ENDS, {"NAME": "a"}), (HANGS, {})], limit=3)


def test_a_process_is_killed_where_its_block_fails_and_its_words_are_in_the_error() -> None:
    with (
        pytest.raises(subprocess.TimeoutExpired) as failed,
        Process(HANGS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr.readline() == "err\n"
        process.wait(0.01)
    assert process.returncode == -9 and not os.path.exists(f"/proc/{process.pid}")
    assert failed.value.__notes__ == [f"process {process.pid} ended with -9 and had said:\nout\n"]


def test_an_address_is_reserved_and_can_be_listened_at() -> None:
    with reserved() as address:
        port = int(address.rpartition(":")[2])
        with socket.socket() as other, pytest.raises(OSError):
            other.bind(("127.0.0.1", port))
        with socket.socket() as service:
            service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            service.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            service.bind(("127.0.0.1", port))
            service.listen()
            socket.create_connection(("127.0.0.1", port)).close()
