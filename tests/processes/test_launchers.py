"""What Slurm, Open MPI, Kubernetes and TPU slices say in the environment gives the right cluster."""

from unittest import mock

import pytest

from jaxenc.errors import UserError
from jaxenc.processes import tpu
from jaxenc.processes.cluster import Cluster, from_environment, must_be_alone
from jaxenc.processes.connection import connect
from jaxenc.processes.slurm import hosts
from tests.processes.metadata import metadata_server

STEP = {
    "SLURM_JOB_ID": "4103", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "10", "SLURM_STEP_NUM_TASKS": "10", "SLURM_PROCID": "7",
    "SLURM_STEP_NODELIST": "a[01-03,07],b5", "SLURM_STEP_TASKS_PER_NODE": "2(x5)", "SLURM_NODEID": "3", "SLURM_LOCALID": "1",
}  # fmt: skip
# As Open MPI 4 and 5 set them for two ranks of one host.
OMPI = {
    "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_NAMESPACE": "prterun-host-4711@1",
}  # fmt: skip
TPU = {"TPU_ML_PLATFORM": "JAX"}
GKE = {**TPU, "TPU_WORKER_HOSTNAMES": "w0.tpu,w1.tpu,w2.tpu,w3.tpu", "TPU_WORKER_ID": "2"}
POD = {"JOB_COMPLETION_INDEX": "3", "JAXENC_COORDINATOR": "run-0.run:8476", "JAXENC_PROCESSES": "4"}


def at(cluster: Cluster) -> tuple[str, int, int]:
    return cluster.address, cluster.count, cluster.index


@pytest.mark.parametrize(
    "listed, expected",
    [
        ("a[01-03,07],b5", "a01 a02 a03 a07 b5"),
        ("n1", "n1"),
        ("n1,n3", "n1 n3"),
        ("node[8-11]", "node8 node9 node10 node11"),
        ("node[098-101]", "node098 node099 node100 node101"),
        ("rack[0-1]n[1-2]", "rack0n1 rack0n2 rack1n1 rack1n2"),
        ("gpu-a[1].site,login-2.site", "gpu-a1.site login-2.site"),
        ("", ""),
        ("a[1-", ""),
        ("a[x]", ""),
        ("a b", ""),
    ],
)
def test_a_node_list_is_expanded_as_scontrol_does(listed: str, expected: str) -> None:
    assert hosts(listed) == expected.split()


def test_a_step_of_slurm_meets_on_its_first_host() -> None:
    """4103 modulo 4,096 is 7; all tasks say the same address."""
    cluster = from_environment(STEP)
    assert at(cluster) == ("a01:61447", 10, 7) and cluster.hosts == 5 and cluster.meet == 1800
    assert at(from_environment({**STEP, "SLURM_PROCID": "0", "SLURM_NODEID": "0"})) == ("a01:61447", 10, 0)
    one = {**STEP, "SLURM_STEP_NODELIST": "a01", "SLURM_STEP_TASKS_PER_NODE": "10"}
    assert (from_environment(one).hosts, from_environment(one).meet) == (1, 300)


def test_jobs_and_steps_that_share_a_node_have_ports_of_their_own() -> None:
    ports = [
        int(from_environment({**STEP, "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": str(step)}).address.split(":")[1])
        for job in range(9000, 9500)
        for step in range(8)
    ]
    assert len(set(ports)) == len(ports) and min(ports) >= 61440 and max(ports) <= 65535


@pytest.mark.parametrize(
    "more, visible, expected",
    [
        ({}, "0,1", (1,)),
        ({}, "4,5,6,7", (2, 3)),
        ({"SLURM_LOCALID": "0"}, "0,1", (0,)),
        ({}, "0", ()),
        ({"SLURM_GPUS_PER_TASK": "2"}, "0,1", ()),
        ({"JAX_PLATFORMS": "cpu"}, "0,1", ()),
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),1,3"}, "0,1", ()),
        ({"SLURM_STEP_TASKS_PER_NODE": ""}, "0,1", ()),
    ],
    ids=["one each", "two each", "task 0", "its own alone", "bound by Slurm", "on CPUs", "alone on its host", "nobody says"],
)
def test_tasks_of_one_host_share_its_gpus(more: dict[str, str], visible: str, expected: tuple[int, ...]) -> None:
    assert from_environment({**STEP, "CUDA_VISIBLE_DEVICES": visible, **more}).gpus == expected


def test_gpus_that_tasks_cannot_share_evenly_are_refused() -> None:
    with pytest.raises(UserError, match="2 processes of SLURM_STEP_NUM_TASKS share this host and its 3 GPUs; start as many as divide them"):
        from_environment({**STEP, "CUDA_VISIBLE_DEVICES": "0,1,2"})


def test_ranks_of_open_mpi_on_one_host_meet_on_loopback() -> None:
    address, count, index = at(from_environment(OMPI))
    host, _, port = address.rpartition(":")
    assert (host, count, index) == ("127.0.0.1", 2, 1) and 61440 <= int(port) <= 65535
    assert at(from_environment({**OMPI, "OMPI_COMM_WORLD_RANK": "0"})) == (address, 2, 0)
    assert from_environment({**OMPI, "PMIX_NAMESPACE": "prterun-host-4712@1"}).address != address


@pytest.mark.parametrize(
    "uri, host",
    [
        ("1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "10.96.0.1"),
        ("1531576320.0;tcp://10.96.0.7:34911", "10.96.0.7"),
        ("1314521088.0;tcp6://[2620:10d:c083:150e::3000:2,fe80::1]:43370", "[2620:10d:c083:150e::3000:2]"),
    ],
)
def test_ranks_of_open_mpi_on_several_hosts_meet_at_the_head_node(uri: str, host: str) -> None:
    cluster = from_environment({**OMPI, "OMPI_COMM_WORLD_SIZE": "8", "OMPI_MCA_orte_hnp_uri": uri})
    assert cluster.address.rpartition(":")[0] == host and cluster.hosts > 1 and cluster.meet == 1800


def test_the_innermost_launcher_counts() -> None:
    """mpirun in a Slurm job: its daemons are a step of Slurm, whose numbers their ranks inherit. srun's own PMI says what srun says."""
    assert from_environment({**STEP, **OMPI}).count == 2
    assert from_environment({**STEP, "PMI_SIZE": "10", "PMI_RANK": "7"}).count == 10
    with pytest.raises(UserError, match="PMI_SIZE is 20 and PMI_RANK is 15"):
        from_environment({**STEP, "PMI_SIZE": "20", "PMI_RANK": "15"})
    with pytest.raises(UserError, match="OMPI_COMM_WORLD_SIZE is 8 and OMPI_COMM_WORLD_RANK is 1: one of 8 processes"):
        from_environment({**OMPI, "OMPI_COMM_WORLD_SIZE": "8"})  # Open MPI 5 names no head node


def test_a_pod_of_an_indexed_job_has_its_index_as_rank() -> None:
    assert at(from_environment(POD)) == ("run-0.run:8476", 4, 3)
    assert at(from_environment({**POD, "JAXENC_PROCESS": "1"})) == ("run-0.run:8476", 4, 1)
    with pytest.raises(UserError, match="JOB_COMPLETION_INDEX is 4 and JAXENC_PROCESSES is 4; number processes from 0"):
        from_environment({**POD, "JOB_COMPLETION_INDEX": "4"})


def test_r34_a_lone_pod_of_an_indexed_job_is_refused_with_the_variables_that_join_it() -> None:
    with pytest.raises(UserError, match="set JAXENC_COORDINATOR=HOST:PORT of pod 0 and JAXENC_PROCESSES=the Job's completions"):
        from_environment({"JOB_COMPLETION_INDEX": "3"})
    assert from_environment({"JOB_COMPLETION_INDEX": "3", "JAXENC_PROCESSES": "1"}) == Cluster()


def test_a_slice_of_gke_is_joined_by_jax() -> None:
    cluster = from_environment({**GKE, "JOB_COMPLETION_INDEX": "2"})
    assert at(cluster) == ("", 4, 2) and cluster.jax_joins and cluster.meet == 1800
    with pytest.raises(UserError, match="TPU_WORKER_HOSTNAMES is 4: jaxenc demo runs in one process; start it once"):
        must_be_alone(GKE, "jaxenc demo")


def test_slices_follow_one_another() -> None:
    several = {**GKE, "MEGASCALE_NUM_SLICES": "3", "MEGASCALE_SLICE_ID": "2", "MEGASCALE_COORDINATOR_ADDRESS": "w0.tpu"}
    assert at(from_environment(several)) == ("", 12, 10)


@pytest.mark.parametrize(
    "given",
    [
        {**GKE, "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"},
        {**GKE, "JAX_PLATFORMS": "cpu"},
        {**GKE, "JAXENC_PROCESSES": "1"},
        {"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"},
        {**TPU, "TPU_SKIP_MDS_QUERY": "1"},
    ],
    ids=["one worker", "a process without TPUs", "by name", "one worker, no libtpu", "no metadata server"],
)
def test_one_worker_is_one_process(given: dict[str, str]) -> None:
    assert from_environment(given) == Cluster()


def test_r34_a_worker_in_which_jax_sees_no_tpu_is_refused() -> None:
    """It would train alone on its CPUs, like every other."""
    with pytest.raises(UserError, match="TPU_WORKER_HOSTNAMES names 4 workers with TPUs, and jax finds no TPU here; install jax"):
        from_environment({name: value for name, value in GKE.items() if name != "TPU_ML_PLATFORM"})


@pytest.mark.parametrize("more", [{"TPU_WORKER_ID": ""}, {"TPU_WORKER_ID": "4"}, {"MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "2"}])
def test_numbers_of_a_slice_that_cannot_be_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(UserError, match="of 4 in TPU_WORKER_HOSTNAMES, MEGASCALE_SLICE_ID"):
        from_environment({**GKE, **more})


@pytest.mark.parametrize("endpoints", ["w0.tpu,w1.tpu", "name:1:10.0.0.1,name:2:10.0.0.2"])
def test_a_tpu_vm_is_what_its_metadata_server_says(endpoints: str) -> None:
    with metadata_server({"agent-worker-number": "1", "worker-network-endpoints": endpoints, "tpu-env": "ZONE: 'a'\n"}) as server:
        cluster = from_environment({**TPU, "GCE_METADATA_IP": server})
    assert at(cluster) == ("", 2, 1) and cluster.jax_joins and cluster.counted_by == "worker-network-endpoints"


def test_slices_of_tpu_vms_are_what_their_metadata_server_says() -> None:
    told = {
        "tpu-env": "MEGASCALE_NUM_SLICES: '2'\nMEGASCALE_SLICE_ID: '1'\n",
        "agent-worker-number": "1",
        "worker-network-endpoints": "a,b",
    }
    with metadata_server(told) as server:
        assert at(from_environment({**TPU, "GCE_METADATA_IP": server})) == ("", 4, 3)


def test_a_tpu_vm_with_one_worker_is_one_process() -> None:
    with metadata_server({"agent-worker-number": "0", "worker-network-endpoints": "a", "tpu-env": ""}) as server:
        assert from_environment({**TPU, "GCE_METADATA_IP": server}) == Cluster()
    with metadata_server({}) as server:
        assert from_environment({**TPU, "GCE_METADATA_IP": server}) == Cluster()


def test_a_metadata_server_that_does_not_answer_is_one_line() -> None:
    """A worker that asked nobody would train alone."""
    with metadata_server({}) as server:
        gone = server
    with (
        mock.patch.object(tpu, "PAUSE", 0),
        pytest.raises(UserError, match=f"the metadata server {gone} does not answer .*this host has TPUs; set"),
    ):
        from_environment({**TPU, "GCE_METADATA_IP": gone})


@pytest.mark.parametrize("given", [STEP, OMPI, GKE], ids=["Slurm", "Open MPI", "TPU"])
def test_the_number_of_processes_that_is_expected_is_checked(given: dict[str, str]) -> None:
    cluster = from_environment(given)
    assert from_environment({**given, "JAXENC_PROCESSES": str(cluster.count)}) == cluster
    with pytest.raises(UserError, match=f"JAXENC_PROCESSES is 6, and {cluster.counted_by} counts {cluster.count} processes; start 6"):
        from_environment({**given, "JAXENC_PROCESSES": "6"})


@pytest.mark.parametrize("given", [STEP, OMPI, GKE], ids=["Slurm", "Open MPI", "TPU"])
def test_an_address_that_is_given_is_the_address(given: dict[str, str]) -> None:
    cluster = from_environment({**given, "JAXENC_COORDINATOR": "10.0.0.9:1234"})
    assert at(cluster) == ("10.0.0.9:1234", from_environment(given).count, from_environment(given).index) and not cluster.jax_joins


@pytest.mark.parametrize("index", [0, 1])
def test_loopback_is_refused_where_the_launcher_counts_several_hosts(index: int) -> None:
    """Before anything waits: on Debian the name of a host is 127.0.1.1 on itself, and the others never reach process 0."""
    step = {**STEP, "SLURM_PROCID": str(index), "SLURM_STEP_NODELIST": "localhost,b5"}
    explicit = {**step, "JAXENC_COORDINATOR": "127.0.0.1:1234", "JAXENC_PROCESSES": "10", "JAXENC_PROCESS": str(index)}
    for given, address in ((step, "localhost:61447"), (explicit, "127.0.0.1:1234")):
        with pytest.raises(
            UserError, match=f"{address}, is this host's own loopback, and the processes are on several hosts; set JAXENC_COOR"
        ):
            connect(from_environment(given))
