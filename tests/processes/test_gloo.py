"""What Gloo prints is left out; what Python prints is not."""

import subprocess
import sys

import pytest

from tests.group import reserved, together

QUIET = """
import os, sys
from jaxenc.processes.gloo import be_quiet
print("before")
be_quiet()
os.write(1, b"[Gloo] Rank 0 is connected to 1 peer ranks.\\n")
print("after")
print("an error", file=sys.stderr)
"""

TWO = """
import os, sys
from jaxenc.processes import cluster, connection
with connection.joined(cluster.Cluster(sys.argv[1], 2, int(sys.argv[2])), lambda error: print(repr(error)) or 1):
    from jax.experimental import multihost_utils
    multihost_utils.sync_global_devices("here")
    print("met")
"""


def test_r40_gloo_is_quiet_and_python_is_not() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout.splitlines(), done.stderr) == (["before", "after"], "an error\n")


@pytest.mark.slow
def test_r40_two_processes_start_without_a_line_of_gloo() -> None:
    """The real thing: the first collective of two processes, where Gloo prints a line in each."""
    with reserved() as address:
        done = together([((sys.executable, "-c", TWO, address, rank), {}) for rank in ("0", "1")])
    assert [one.out for one in done] == ["met\n", "met\n"]
