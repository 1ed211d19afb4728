"""The job that Open MPI's `mpirun` started this process in."""

import dataclasses
import re
import zlib
from collections.abc import Mapping

from jaxenc.processes.rank import Rank, from_variables, number, port

# Variables that are the same in all ranks of a job and differ between jobs: of Open MPI 4 and 5, of 3 and 4, of up to 4.
NAMES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri")


def rank(environment: Mapping[str, str]) -> Rank | None:
    """This process's rank in its job, None outside a job of several (docs.open-mpi.org, "Launching applications: environment").

    The address is 127.0.0.1 where all ranks are on one host. Else it is that of the host where `mpirun` runs, the "head node process",
    which Open MPI up to 4 exports; rank 0 is there unless a host file leaves that host out. Open MPI 5 exports no such address. The port
    is one of 4,096 by the job's name.
    """
    found = from_variables(environment, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")
    if found is None:
        return None
    local_count, local_index = (number(environment, f"OMPI_COMM_WORLD_LOCAL_{name}", 0) for name in ("SIZE", "RANK"))
    job = next((environment[name] for name in NAMES if environment.get(name)), "")
    # 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911 or 1314521088.0;tcp6://[fe80::1,2620::2]:43370
    uri = re.search(r"tcp://([^,:]+)|tcp6://\[([^,\]]+)", environment.get("OMPI_MCA_orte_hnp_uri", ""))
    host = "127.0.0.1" if local_count == found.count else (uri[1] or f"[{uri[2]}]") if uri else ""
    address = f"{host}:{port(zlib.crc32(job.encode()))}" if job and host else ""
    # How many hosts there are is not exported: 2 stands for several.
    hosts = 1 if local_count == found.count else 2 if local_count else 0
    return dataclasses.replace(found, address=address, hosts=hosts, local_index=local_index, local_count=max(local_count, 1))
