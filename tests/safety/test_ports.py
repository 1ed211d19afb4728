"""Where the processes of a run listen: nobody asks who calls there."""

import re
import sys

from tests.faults.gang import Gang

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1 as /proc/net/tcp and tcp6 write it
LISTENING = """
import os
from pathlib import Path
import numpy as np
from jax.experimental.multihost_utils import process_allgather
from jaxenc.processes import barriers, cluster, connection

with connection.joined(cluster.from_environment(os.environ), lambda error: print(error, flush=True) or 1):
    assert process_allgather(np.ones(1)).sum() == 2
    sockets = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if f"socket:[{fields[9]}]" in sockets and fields[3] == "0A":
                print("LISTENS", fields[1], flush=True)
    if barriers.is_primary():
        print("PORT", os.environ["JAXENC_COORDINATOR"], flush=True)
    barriers.barrier("both have looked")
"""


def test_processes_listen_where_they_are_told() -> None:
    """The coordinator and the collectives of both: as launch/local.sh tells them, on this machine's loopback alone."""
    with Gang(2, 1, (sys.executable, "-c", LISTENING)) as gang:
        assert gang.end() == 0, gang.said
    told = re.search(r"PORT 127\.0\.0\.1:(\d+)", gang.said)
    assert told, gang.said
    # Nothing of jax's or Gloo's own.
    assert all(re.match(r"\[[01]\] (LISTENS|PORT) ", line) for line in gang.lines), gang.said
    places = re.findall(r"LISTENS ([0-9A-F]+):([0-9A-F]{4})", gang.said)
    assert int(told[1]) in {int(port, 16) for _, port in places}, gang.said
    # The coordinator's, and one of Gloo's in each process.
    assert len(places) >= 3 and {address for address, _ in places} <= LOOPBACK, places
