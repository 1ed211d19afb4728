"""Which GPUs a process takes where others of its job are on the same host."""

from collections.abc import Mapping
from pathlib import Path

from jaxenc.errors import UserError
from jaxenc.processes.place import Place

DRIVER = Path("/proc/driver/nvidia/gpus")  # a folder for each GPU that the driver has
# Slurm's --gpus-per-task, which gives each task its own and shows it no other.
BOUND = ("SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK")


def share(environment: Mapping[str, str], place: Place, driver: Path = DRIVER) -> tuple[int, ...]:
    """The local ids of this process's GPUs, () for all that it sees: these are split evenly among the processes of its host, in order.

    Without this each would take memory on all. A process that sees fewer than there are processes, or that Slurm bound to its own, keeps
    what it sees. Raises UserError where the GPUs do not divide.
    """
    platforms = environment.get("JAX_PLATFORMS") or "cuda"
    if place.beside == 1 or any(map(environment.get, BOUND)) or not {"cuda", "gpu"} & set(platforms.split(",")):
        return ()
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    seen = len(list(driver.glob("*"))) if listed is None else len([name for name in listed.split(",") if name])
    if seen < place.beside:
        return ()
    if seen % place.beside:
        what = f"{place.beside} processes of {place.size} share this host and its {seen} GPUs"
        raise UserError(what, fix="start as many as divide them, or give each its own in CUDA_VISIBLE_DEVICES (srun: --gpus-per-task)")
    each = seen // place.beside
    return tuple(range(place.local * each, (place.local + 1) * each))
