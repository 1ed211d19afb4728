"""The job that Open MPI's `mpirun` started this process in."""

import dataclasses
import re
import zlib
from collections.abc import Mapping

from jaxenc.processes.place import Place, numbered, port, whole

# What is the same in all ranks of a job and differs between jobs: of Open MPI 4 and 5, of 3 and 4, of up to 4.
NAMES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri")


def place(environment: Mapping[str, str]) -> Place | None:
    """This rank's place in its job, None outside a job of several ranks (docs.open-mpi.org, "Launching applications: environment").

    The address is 127.0.0.1 where all ranks are on one host. Else it is that of the host where `mpirun` runs, the "head node process",
    which Open MPI up to 4 exports; rank 0 is there unless a host file leaves that host out. Open MPI 5 exports no such address. The port
    is one of 4,096 by the job's name.
    """
    found = numbered(environment, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")
    if found is None:
        return None
    beside, local = whole(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 0), whole(environment, "OMPI_COMM_WORLD_LOCAL_RANK", 0)
    job = next((environment[name] for name in NAMES if environment.get(name)), "")
    # 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911 or 1314521088.0;tcp6://[fe80::1,2620::2]:43370
    uri = re.search(r"tcp://([^,:]+)|tcp6://\[([^,\]]+)", environment.get("OMPI_MCA_orte_hnp_uri", ""))
    host = "127.0.0.1" if beside == found.count else (uri[1] or f"[{uri[2]}]") if uri else ""
    address = f"{host}:{port(zlib.crc32(job.encode()))}" if job and host else ""
    # How many hosts there are is not exported: 2 stands for several.
    hosts = 1 if beside == found.count else 2 if beside else 0
    return dataclasses.replace(found, address=address, hosts=hosts, local=local, beside=max(beside, 1))
