"""The processes of a run, as the environment describes them: how many there are, which this is, where and for how long they meet."""

import dataclasses
from collections.abc import Mapping

from jaxenc.errors import UserError
from jaxenc.processes import addresses, gpus, launchers
from jaxenc.processes.rank import Rank, is_number

COORDINATOR, PROCESSES, PROCESS = "JAXENC_COORDINATOR", "JAXENC_PROCESSES", "JAXENC_PROCESS"
MEET, HEARTBEAT, LEAVE = "JAXENC_MEET", "JAXENC_HEARTBEAT", "JAXENC_LEAVE"
POD = "JOB_COMPLETION_INDEX"  # Kubernetes: the index of a pod of an indexed Job
MOST = (1 << 31) - 1  # of processes and of seconds: jax counts both in 32 bits
# Seconds for several hosts to meet: they come up minutes apart and load jax from cold disks. Gangs that restarted cold died after 300
# (github.com/marin-community/marin/pull/7232).
MEET_SEVERAL_HOSTS = 1800


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes of a run. Raises UserError for numbers out of range and an address that is not one.

    address: HOST:PORT at which process 0 listens, without authentication, and which the others call; '' for one process, and with
    jax_joins, where jax finds it by itself. count: the number of processes; index: of this one, from 0. counted_by, numbered_by: the
    variables that say so.

    Seconds: meet, for all processes to join. heartbeat, after which a silent process counts as dead and jax aborts all others; at the
    earliest after half of it, since signs of life are sent that often. leave, for all processes to leave at the end.

    hosts: the number of hosts, 0 where it is not known. gpus: local ids of the GPUs of this process, () for all that it sees.
    """

    address: str = ""
    count: int = 1
    index: int = 0
    heartbeat: int = 90
    meet: int = 300
    leave: int = 30
    hosts: int = 0
    jax_joins: bool = False
    gpus: tuple[int, ...] = ()
    counted_by: str = PROCESSES
    numbered_by: str = PROCESS

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            what = f"{self.numbered_by} is {self.index} and {self.counted_by} is {self.count}"
            raise UserError(what, fix=f"number processes from 0, each below {self.counted_by}")
        for name, seconds in ((MEET, self.meet), (HEARTBEAT, self.heartbeat), (LEAVE, self.leave)):
            if seconds < 1:
                raise UserError(f"{name} is {seconds}", fix="it is at least 1 second")
        if self.count > 1 and not self.jax_joins and not addresses.is_address(self.address):
            raise UserError(f"{COORDINATOR} is {self.address!r}", fix="write HOST:PORT of process 0, an IPv6 address in brackets")


def from_environment(environment: Mapping[str, str]) -> Cluster:
    """The cluster that the environment describes; one process where nothing says that there are several, or only JAXENC_PROCESSES=1 does.

    In this order: JAXENC_COORDINATOR=HOST:PORT, JAXENC_PROCESSES and JAXENC_PROCESS, which a pod of an indexed Kubernetes Job has as
    JOB_COMPLETION_INDEX; what Open MPI, a step of Slurm or a TPU slice says (`launchers.rank`): beside it JAXENC_COORDINATOR replaces the
    address, and JAXENC_PROCESSES is the number to expect. JAXENC_MEET, JAXENC_HEARTBEAT and JAXENC_LEAVE are seconds, as in `Cluster`; the
    first is 1800 unless set where the processes may be on several hosts.

    Raises UserError, with the variables to set, where a launcher started this process as one of several and does not say where process 0
    can listen, since each would train alone; where two numbers of processes differ; where only some variables are set; for text that is
    not a number; and as `Cluster`.
    """
    given = [name for name in (COORDINATOR, PROCESSES, PROCESS) if environment.get(name)]
    if given == [PROCESSES] and environment[PROCESSES] == "1":
        return Cluster()
    index = POD if given == [COORDINATOR, PROCESSES] and environment.get(POD) else PROCESS
    if len(given) == 3 or index == POD:
        rank = _explicit(environment, index)
    elif PROCESS not in given and (found := launchers.rank(environment)) is not None:
        rank = _expected(found, environment, given)
    elif given:
        fix = f"set {COORDINATOR}, {PROCESSES} and {PROCESS}, or none of them"
        raise UserError(f"{' and '.join(given)} set without the rest", fix=fix)
    elif environment.get(POD):
        what = f"{POD} is {environment[POD]}: one pod of an indexed Job, which would run alone"
        join = f"{COORDINATOR}=HOST:PORT of pod 0 and {PROCESSES}=the Job's completions"
        raise UserError(what, fix=f"set {join} to join them, or {PROCESSES}=1 for a pod that is meant to be alone")
    else:
        return Cluster()
    one_host = rank.hosts == 1 or addresses.is_named_loopback(rank.address)
    return Cluster(
        rank.address,
        rank.count,
        rank.index,
        heartbeat=_number(environment, HEARTBEAT, Cluster.heartbeat),
        meet=_number(environment, MEET, Cluster.meet if one_host else MEET_SEVERAL_HOSTS),
        leave=_number(environment, LEAVE, Cluster.leave),
        hosts=rank.hosts,
        jax_joins=rank.jax_joins,
        gpus=gpus.share(environment, rank),
        counted_by=rank.counted_by,
        numbered_by=rank.numbered_by,
    )


def must_be_alone(environment: Mapping[str, str], command: str) -> None:
    """Raises UserError where this process is one of several, for a `command` that runs in one. Also raises as `from_environment`."""
    cluster = from_environment(environment)
    if cluster.count > 1:
        raise UserError(f"{cluster.counted_by} is {cluster.count}: {command} runs in one process", fix=f"start it once, with {PROCESSES}=1")


def _explicit(environment: Mapping[str, str], variable: str) -> Rank:
    """The rank that JAXENC_COORDINATOR, JAXENC_PROCESSES and the index in `variable` give; what a launcher of the same processes knows of
    their hosts is added."""
    count, index = _number(environment, PROCESSES, 1), _number(environment, variable, 0)
    own = Rank(PROCESSES, variable, count, index, environment[COORDINATOR])
    # On cpu, since for TPUs a metadata server would be asked.
    found = launchers.rank({**environment, "JAX_PLATFORMS": "cpu"})
    if found is None or (found.count, found.index) != (count, index):
        return own
    return dataclasses.replace(own, hosts=found.hosts, local_index=found.local_index, local_count=found.local_count)


def _expected(found: Rank, environment: Mapping[str, str], given: list[str]) -> Rank:
    """The rank that a launcher gives, at the address in JAXENC_COORDINATOR where it is set. Raises UserError where JAXENC_PROCESSES is
    another number, and where there is no address."""
    if PROCESSES in given and (expected := _number(environment, PROCESSES, 1)) != found.count:
        fix = f"start {expected} processes, or leave {PROCESSES} out"
        raise UserError(f"{PROCESSES} is {expected}, and {found.counted_by} counts {found.count} processes", fix=fix)
    if COORDINATOR in given:
        return dataclasses.replace(found, address=environment[COORDINATOR], jax_joins=False)
    if not (found.address or found.jax_joins):
        who = f"{found.counted_by} is {found.count} and {found.numbered_by} is {found.index}"
        what = f"{who}: one of {found.count} processes that would each run alone"
        join = f"{COORDINATOR}=HOST:PORT of process 0, {PROCESSES}=${found.counted_by} and {PROCESS}=${found.numbered_by}"
        raise UserError(what, fix=f"set {join} to join them, or {PROCESSES}=1 for a process that is meant to be alone")
    return found


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    """The number in a variable of ours, `default` where it is not set."""
    text = environment.get(name) or str(default)
    if not is_number(text) or int(text) > MOST:
        raise UserError(f"{name} is {text!r}", fix=f"it is a whole number up to {MOST}")
    return int(text)
