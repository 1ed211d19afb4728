"""The TPU slice that this host is a worker of: on GKE by variables, on a TPU VM by its metadata server."""

import time
import urllib.error
import urllib.request
from collections.abc import Mapping

from jaxenc.errors import UserError
from jaxenc.processes.rank import Rank, is_number

# Where GKE names the workers of a slice; jax asks in this order.
WORKERS = ("TPU_PROCESS_ADDRESSES", "TPU_WORKER_HOSTNAMES")
# Requests to the metadata server: tries and the seconds between two, as jax has them; seconds that one may take.
TRIES, PAUSE, ANSWER = 6, 0.5, 10


def rank(environment: Mapping[str, str]) -> Rank | None:
    """This worker's rank in its slice, or in all slices together (MEGASCALE_*); None where it is alone or JAX_PLATFORMS has no `tpu`.

    jax finds the address of process 0 by itself (`jax.distributed.initialize`: "if you are using TPU, all arguments are optional"), and
    numbers the processes as this does: slice by slice, in each by worker (jax/_src/clusters/cloud_tpu_cluster.py). Raises UserError where
    there are several workers and jax sees no TPU here, for numbers out of range, and where no metadata server answers.
    """
    if "tpu" not in (environment.get("JAX_PLATFORMS") or "tpu").split(","):
        return None
    # jax sets this variable when it is imported where there are chips and libtpu; elsewhere it would not join.
    seen = bool(environment.get("TPU_ML_PLATFORM"))
    size = next((name for name in WORKERS if environment.get(name)), "")
    if size:
        own, names, worker, settings = "TPU_WORKER_ID", environment[size].split(","), environment.get("TPU_WORKER_ID", ""), environment
    elif seen and not environment.get("TPU_SKIP_MDS_QUERY") and (worker := _metadata(environment, "agent-worker-number")):
        size, own = "worker-network-endpoints", "agent-worker-number"
        names, settings = _metadata(environment, size).split(","), {**_settings(_metadata(environment, "tpu-env")), **environment}
    else:
        return None
    slices, number = settings.get("MEGASCALE_NUM_SLICES") or "1", settings.get("MEGASCALE_SLICE_ID") or "0"
    if not all(map(is_number, (slices, number, worker))) or int(worker) >= len(names) or int(number) >= int(slices):
        what = f"{own} is {worker!r} of {len(names)} in {size}, MEGASCALE_SLICE_ID {number!r} of {slices!r} in MEGASCALE_NUM_SLICES"
        raise UserError(what, fix="number workers and slices from 0, as the platform does")
    count = len(names) * int(slices)
    if count == 1:
        return None
    if not seen:
        fix = (
            "install jax[tpu], set JAX_PLATFORMS=cpu for a process that uses none, or JAXENC_PROCESSES=1 for one that is meant to be alone"
        )
        raise UserError(f"{size} names {len(names)} workers with TPUs, and jax finds no TPU here", fix=fix)
    return Rank(size, own, count, int(worker) + int(number) * len(names), hosts=count, jax_joins=True)


def _metadata(environment: Mapping[str, str], key: str) -> str:
    """An attribute of this instance, '' where it has none (docs.cloud.google.com/compute/docs/metadata). GCE_METADATA_IP is jax's variable
    for another server. Raises UserError where none answers."""
    server = environment.get("GCE_METADATA_IP") or "metadata.google.internal"
    address = f"http://{server}/computeMetadata/v1/instance/attributes/{key}"
    request = urllib.request.Request(address, headers={"Metadata-Flavor": "Google"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for left in reversed(range(TRIES)):
        try:
            with direct.open(request, timeout=ANSWER) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                return ""
            why = f"answers {error.code}"
        except OSError as error:
            why = f"does not answer ({error})"
        if left:
            time.sleep(PAUSE)
    fix = "set JAXENC_COORDINATOR, JAXENC_PROCESSES and JAXENC_PROCESS, or JAXENC_PROCESSES=1 for a process that is meant to be alone"
    raise UserError(f"{key}: the metadata server {server} {why}, and this host has TPUs", fix=fix)


def _settings(text: str) -> dict[str, str]:
    """Lines such as MEGASCALE_NUM_SLICES: '2' as a dict."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip().strip("'") for name, colon, value in pairs if colon}
