"""One all-reduce over all devices, with an exact answer."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxenc.findings import OK, PROBLEM, Finding

CHECK = "all-reduce"
SIZE = 1 << 20  # int32 values of each device
TIMES = 5


def check(seconds: float) -> Finding:
    """Adds integers of all devices of all processes and compares the sum. Gives up after `seconds`; a thread that hangs is then left."""
    answer: list[Finding] = []

    def run() -> None:
        try:
            answer.append(judge(*_reduced()))
        except Exception as error:  # of any backend
            what = f"failed ({str(error).partition(chr(10))[0]})"
            answer.append(Finding(PROBLEM, CHECK, what, _advice()))

    thread = threading.Thread(target=run, name="jaxenc-all-reduce", daemon=True)
    thread.start()
    thread.join(seconds)
    if answer:
        return answer[0]
    return Finding(PROBLEM, CHECK, f"over {jax.device_count()} devices did not end in {seconds:g} s", _advice(), stuck=True)


def judge(values: np.ndarray, devices: int, seconds: float) -> Finding:
    """values: the sums [SIZE] int32 over `devices`, of which device d has d + 1 + its place in the array. seconds: of one all-reduce."""
    expected = devices * (devices + 1) // 2 + devices * np.arange(len(values), dtype=np.int64)
    wrong = int((values != expected).sum())
    if wrong:
        return Finding(
            PROBLEM, CHECK, f"{wrong:,} of {len(values):,} sums over {devices} devices are wrong", "replace the device or the link"
        )
    return Finding(OK, CHECK, f"{values.nbytes / 1e6:.1f} MB over {devices} device{'s' * (devices > 1)}: exact, {1e3 * seconds:.1f} ms")


def _reduced() -> tuple[np.ndarray, int, float]:
    devices = jax.devices()
    mesh = Mesh(np.array(devices), ("all",))
    by_device = NamedSharding(mesh, PartitionSpec("all"))
    own = lambda index: np.arange(SIZE, dtype=np.int32)[None] + (index[0].start or 0) + 1
    values = jax.make_array_from_callback((len(devices), SIZE), by_device, own)
    add = jax.jit(lambda x: jnp.sum(x, axis=0), out_shardings=NamedSharding(mesh, PartitionSpec()))
    total = jax.block_until_ready(add(values))
    took = []
    for _ in range(TIMES):
        began = time.monotonic()
        total = jax.block_until_ready(add(values))
        took.append(time.monotonic() - began)
    return np.asarray(total.addressable_data(0)), len(devices), min(took)


def _advice() -> str:
    ways = {
        "gpu": "set NCCL_DEBUG=INFO and see which network NCCL takes (NCCL_SOCKET_IFNAME names another)",
        "tpu": "start the slice again, and see the log of libtpu (TPU_STDERR_LOG_LEVEL=0)",
    }
    return ways.get(jax.default_backend(), "let the processes reach one another's ports")
