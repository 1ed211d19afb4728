"""One of two processes of `jaxenc doctor` with faults planted in process 1: `python -m tests.doctor.planted FOLDER`.

FOLDER/RANK: a disk of each process's own, with its data/. The clock of process 1 is two minutes slow and its jax another one; both see a
GPU's device file under FOLDER/machine, and JAX_PLATFORMS is cpu.
"""

import os
import sys
import time
from importlib import metadata
from pathlib import Path
from unittest import mock

from jaxenc.doctor import roll_call
from jaxenc.doctor.examine import Request, examine
from jaxenc.processes import barriers, cluster, connection

folder, own = Path(sys.argv[1]), cluster.from_environment(os.environ)
os.chdir(folder / str(own.index))
installed = metadata.version
planted = lambda package: "0.9.9" if package == "jax" and own.index else installed(package)
clock = lambda: time.time() - 120 * own.index
request = Request(
    "here", os.environ, "run", "data", clock=clock, root=folder / "machine", seconds=120, visible_within=0.2 * own.index
)  # fmt: skip
met = roll_call.call(own, 120, "here")
with connection.joined(own, lambda error: print(repr(error), flush=True) or 1), mock.patch.object(metadata, "version", planted):
    lines = [finding.line for finding in (*met, *examine(request))]
    assert barriers.gathered("lines", lines) == [lines, lines]
    if barriers.is_primary():
        print("\n".join(lines), flush=True)
