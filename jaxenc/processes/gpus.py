"""The GPUs of a process that shares its host with other processes of the job."""

from collections.abc import Mapping
from pathlib import Path

from jaxenc.errors import UserError
from jaxenc.processes.rank import Rank

DRIVER = Path("/proc/driver/nvidia/gpus")  # a folder for each GPU that the driver has
# Slurm's --gpus-per-task, which gives each task its own and shows it no other.
BOUND = ("SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK")


def share(environment: Mapping[str, str], rank: Rank, driver: Path = DRIVER) -> tuple[int, ...]:
    """The local ids of this process's GPUs: those it sees, split evenly among the processes of its host, in order; () for all of them.

    Without the split each process would take memory on every GPU. A process that sees fewer GPUs than there are processes, or that Slurm
    bound to its own, uses all that it sees. Raises UserError where the GPUs do not divide.
    """
    platforms = environment.get("JAX_PLATFORMS") or "cuda"
    if rank.local_count == 1 or any(map(environment.get, BOUND)) or not {"cuda", "gpu"} & set(platforms.split(",")):
        return ()
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    seen = len(list(driver.glob("*"))) if listed is None else len([name for name in listed.split(",") if name])
    if seen < rank.local_count:
        return ()
    if seen % rank.local_count:
        what = f"{rank.local_count} processes of {rank.counted_by} share this host and its {seen} GPUs"
        raise UserError(what, fix="start as many as divide them, or give each its own in CUDA_VISIBLE_DEVICES (srun: --gpus-per-task)")
    each = seen // rank.local_count
    return tuple(range(rank.local_index * each, (rank.local_index + 1) * each))
