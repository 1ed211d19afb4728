"""One of several processes that predict together: `python -m tests.training.predicting BATCH FOLDER`, as launch/local.sh starts it.

It writes what it gets to FOLDER/RANK.npz.
"""

import os
import sys
from pathlib import Path

import jax
import numpy as np

from jaxenc.processes import cluster, connection
from tests.faults.caching import keep
from tests.training.test_predict import in_batches


def told(error: BaseException) -> int:
    print(f"{type(error).__name__}: {error}", flush=True)
    return 2


keep()
with connection.joined(cluster.from_environment(os.environ), told):
    index, found = in_batches(int(sys.argv[1]), jax.device_count(), "dp")
    np.savez(Path(sys.argv[2]) / f"{jax.process_index()}.npz", index=index, **found)
