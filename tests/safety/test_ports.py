"""Where the processes of a run listen: nobody asks who calls there."""

import re
import sys
from pathlib import Path

from tests.faults.gang import Gang

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1 as /proc/net/tcp and tcp6 write it
LISTENING = """
import os
from pathlib import Path
from jaxenc.sharding import multihost
with multihost.joined(multihost.from_environment(os.environ), lambda error: print(error, flush=True) or 1):
    multihost.barrier("both are here")
    if multihost.is_primary():
        print("PORT", os.environ["JAXENC_COORDINATOR"], flush=True)
        for name in ("tcp", "tcp6"):
            print(Path(f"/proc/self/net/{name}").read_text(), flush=True)
    multihost.barrier("both have looked")
"""


def test_the_coordinator_listens_where_it_is_told(tmp_path: Path) -> None:
    """As launch/local.sh tells it: on this machine's loopback alone."""
    with Gang(2, 1, (sys.executable, "-c", LISTENING), tmp_path) as gang:
        assert gang.end(60) == 0, gang.said
    told = re.search(r"PORT 127\.0\.0\.1:(\d+)", gang.said)
    assert told, gang.said
    # number: address:port of this side, address:port of the other, state; 0A is one that listens.
    places = re.findall(rf"\d+: ([0-9A-F]+):{int(told[1]):04X} [0-9A-F]+:[0-9A-F]+ 0A ", gang.said)
    assert places and set(places) <= LOOPBACK, places
