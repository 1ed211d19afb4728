"""Which of several processes this one is, by the launcher that started it."""

from collections.abc import Mapping

from jaxenc.processes import openmpi, slurm, tpu
from jaxenc.processes.rank import Rank, from_variables

# Launchers that do not say where process 0 can listen: (variable with the number of processes, variable with the rank of this one).
VARIABLES = (
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),  # MVAPICH2
    ("JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),  # IBM's jsrun
    ("PMI_SIZE", "PMI_RANK"),  # MPICH's Hydra, Intel MPI, Cray PALS, srun --mpi=pmi2
    ("WORLD_SIZE", "RANK"),  # torchrun and others that follow it
    ("FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    ("HOROVOD_SIZE", "HOROVOD_RANK"),
    ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
)


def rank(environment: Mapping[str, str]) -> Rank | None:
    """The rank of this process, None where no launcher says that it is one of several. Also raises as `tpu.rank`.

    The innermost launcher counts: `mpirun` in a Slurm job starts its daemons by `srun`, whose numbers their ranks inherit. So Open MPI
    comes first, and a step of Slurm counts where every other launcher, such as srun's own PMI, gives the same numbers.
    """
    if mpi := openmpi.rank(environment):
        return mpi
    others = [found for pair in VARIABLES if (found := from_variables(environment, *pair))]
    step = slurm.rank(environment)
    if step is not None and all((found.count, found.index) == (step.count, step.index) for found in others):
        return step
    return others[0] if others else tpu.rank(environment)
