"""How a process knows that a launcher started it as one of several: by the variables of Slurm, of MPI and of torchrun."""

import dataclasses
from collections.abc import Mapping

# (variable with the number of processes, variable with the rank of this one)
VARIABLES = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),  # Open MPI
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),  # MVAPICH2
    ("JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),  # IBM's jsrun
    ("PMI_SIZE", "PMI_RANK"),  # MPICH's Hydra, Intel MPI, Cray PALS, srun --mpi=pmi2
    ("WORLD_SIZE", "RANK"),  # torchrun and others that follow it
    ("FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    ("HOROVOD_SIZE", "HOROVOD_RANK"),
    ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
)


@dataclasses.dataclass(frozen=True)
class Place:
    """One of several processes. size, rank: the variables that say so; count, index: their values."""

    size: str
    rank: str
    count: int
    index: int


def place(environment: Mapping[str, str]) -> Place | None:
    """Which of several processes this is, None where no launcher says that it is one of several.

    A batch script and the shell of salloc run alone, although Slurm sets the number of tasks for them and rank 0 for the script: only
    `srun` starts a step, whose own number of tasks counts (slurm.schedmd.com/srun.html, "output environment variables").
    """
    for size, rank in (*VARIABLES, *_of_slurm(environment)):
        count, index = environment.get(size, ""), environment.get(rank, "")
        if _is_number(count) and _is_number(index) and int(count) > 1:
            return Place(size, rank, int(count), int(index))
    return None


def _of_slurm(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables of Slurm to read here: none inside a job but outside a step."""
    if environment.get("SLURM_JOB_ID") and not environment.get("SLURM_STEP_ID"):
        return ()
    size = "SLURM_STEP_NUM_TASKS" if environment.get("SLURM_STEP_NUM_TASKS") else "SLURM_NTASKS"
    return ((size, "SLURM_PROCID"),)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
