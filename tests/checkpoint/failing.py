"""Saves step 3 of a directory where it cannot be written and prints the error; root loses its rights first, for it may write anywhere."""

import os
import resource
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.errors import UserError

directory, fault = Path(sys.argv[1]), sys.argv[2]
values = jnp.asarray(np.random.default_rng(0).standard_normal(1_000_000), jnp.float32)
state = {"params": {f"w{number}": values + number for number in range(40)}}
manager = Manager(directory, CheckpointConfig())
if fault == "size_limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
else:
    directory.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)
try:
    manager.save(3, state, {"config.json": b"{}"})
    manager.wait()
except UserError as error:
    print(error)
manager.close()
