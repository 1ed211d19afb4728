"""launch/gke: what is given to kubectl and xpk, and what the rules of the JobSet do with an exit code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.launch.world import AWKWARD, ROOT, World

RUN = ("run", "--name", "r", "--workdir", "gs://b/r", "--image", "i")
GPU = ("--gpu", "nvidia-h100-80gb", "--nodes", "2")
TPU = ("--tpu", "tpu-v5-lite-podslice", "--topology", "4x4", "--slices", "2")
COMMAND = ("--", *AWKWARD)


def manifest(world: World, *options: str) -> dict[str, Any]:
    done = world.run("gke/jobset.sh", *RUN, *options, *COMMAND)
    assert done.returncode == 0, done.stderr
    return yaml.safe_load((world.folder / "manifest.yaml").read_text())


def job(found: dict[str, Any]) -> dict[str, Any]:
    (replicated,) = found["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]


def container(found: dict[str, Any]) -> dict[str, Any]:
    return job(found)["template"]["spec"]["containers"][0]


def expanded(text: str) -> str:
    """What Kubernetes makes of an argument without variables: $$ is $, and $(NAME) of a name that is not set stays."""
    return re.sub(r"\$(\$|\([^)]*\))", lambda found: "$" if found[1] == "$" else f"<{found[1]}>", text)


@pytest.mark.parametrize("kind", [GPU, TPU, ("--nodes", "4")])
def test_every_argument_reaches_the_container_as_it_was_given(world: World, kind: tuple[str, ...]) -> None:
    words = container(manifest(world, *kind))["args"]
    assert [expanded(word) for word in words] == [*AWKWARD, "--workdir", "gs://b/r"]


def test_nodes_with_gpus_are_told_where_process_0_is_and_how_many_they_are(world: World) -> None:
    found = manifest(world, *GPU)
    assert (job(found)["parallelism"], job(found)["completions"], job(found)["completionMode"]) == (2, 2, "Indexed")
    env = {entry["name"]: entry["value"] for entry in container(found)["env"]}
    assert env == {"JAXENC_COORDINATOR": "r-workers-0-0.r:8476", "JAXENC_PROCESSES": "2"}
    assert container(found)["resources"] == {"limits": {"nvidia.com/gpu": 8}}


def test_one_node_is_one_process(world: World) -> None:
    assert container(manifest(world, "--nodes", "1"))["env"] == [{"name": "JAXENC_PROCESSES", "value": "1"}]


def test_a_slice_has_a_pod_a_host_and_gke_tells_them_their_places(world: World) -> None:
    found = manifest(world, *TPU)
    assert found["spec"]["replicatedJobs"][0]["replicas"] == 2 and job(found)["parallelism"] == 4
    assert container(found)["env"] == [] and container(found)["resources"] == {"limits": {"google.com/tpu": 4}}
    assert job(found)["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert "alpha.jobset.sigs.k8s.io/exclusive-topology" in found["metadata"]["annotations"]


def test_spot_nodes_are_asked_for_and_tolerated(world: World) -> None:
    pod = job(manifest(world, "--spot", *GPU))["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-spot"] == "true"
    assert {entry["key"] for entry in pod["tolerations"]} == {"cloud.google.com/gke-spot", "nvidia.com/gpu"}


@pytest.mark.parametrize(
    "code, condition, action",
    [
        (2, "", "FailJobSet"),
        (3, "", "FailJobSet"),
        (127, "", "FailJobSet"),
        (75, "", "RestartJobSetAndIgnoreMaxRestarts"),
        (137, "DisruptionTarget", "RestartJobSetAndIgnoreMaxRestarts"),
        (75, "DisruptionTarget", "RestartJobSetAndIgnoreMaxRestarts"),
        (1, "", "RestartJobSet"),
        (134, "", "RestartJobSet"),
    ],
)
def test_the_restart_policy(world: World, code: int, condition: str, action: str) -> None:
    """By the documented order: the first rule of the Job that matches, its message, the first rule of the JobSet that matches it."""
    found = manifest(world, *GPU)
    assert job(found)["backoffLimit"] == 0 and job(found)["template"]["spec"]["restartPolicy"] == "Never"
    reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    for index, rule in enumerate(job(found)["podFailurePolicy"]["rules"]):
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions", [])
        if (codes and code in codes["values"]) or condition in [entry["type"] for entry in conditions]:
            assert rule["action"] == "FailJob"
            reason = "PodFailurePolicy"
            message = f"Container jaxenc for pod default/r-0 failed with exit code {code} matching FailJob rule at index {index}"
            break
    policy = found["spec"]["failurePolicy"]
    chosen = "RestartJobSet"
    for rule in policy["rules"]:
        if reason in rule["onJobFailureReasons"] and any(re.search(one, message) for one in rule["onJobFailureMessagePatterns"]):
            chosen = rule["action"]
            break
    assert chosen == action and policy["maxRestarts"] == 10


def test_the_same_options_make_the_same_run(world: World) -> None:
    assert manifest(world, *TPU) == manifest(world, *TPU)


def test_stop_and_resume_keep_the_jobset(world: World) -> None:
    for verb in ("stop", "resume", "delete", "logs", "follow", "status"):
        assert world.run("gke/jobset.sh", verb, "--name", "r").returncode == 0
    stop, resume, delete, logs, *_ = world.calls("kubectl")
    assert stop[2:] == ["patch", "jobset", "r", "--type=merge", '--patch={"spec":{"suspend":true}}']
    assert resume[2:] == ["patch", "jobset", "r", "--type=merge", '--patch={"spec":{"suspend":false}}']
    assert delete[2:] == ["delete", "jobset", "r"] and logs[2] == "logs"


def test_xpk_runs_the_command_as_it_was_given(world: World) -> None:
    options = ("--name", "r", "--workdir", "gs://b/r", "--cluster", "c", "--zone", "z", "--type", "v5litepod-16", "--image", "i")
    assert world.run("gke/xpk.sh", *options, *COMMAND).returncode == 0
    (call,) = world.calls("xpk")
    given = dict(zip(call[3::2], call[4::2], strict=True))
    restarted: set[int] = set()
    for part in given["--restart-on-exit-codes"].split(","):
        low, _, high = part.partition("-")
        restarted |= set(range(int(low), int(high or low) + 1))
    # XPK itself adds 42 and 127 to 255.
    assert {1, 75, 125} <= restarted and not restarted & {0, 2, 3, 126}
    assert given["--workload"] == "r" and given["--num-slices"] == "1"
    world.bash("-c", f"({expanded(given['--command']).replace('/opt/jaxenc', str(ROOT))}) & wait $!")
    assert world.given() == [[*AWKWARD, "--workdir", "gs://b/r"]]


def test_xpk_cannot_take_a_line_break(world: World) -> None:
    options = ("--name", "r", "--workdir", "gs://b/r", "--cluster", "c", "--zone", "z", "--type", "v5litepod-16", "--image", "i")
    done = world.run("gke/xpk.sh", *options, "--", "jaxenc", "two\nlines")
    assert done.returncode == 2 and "a line break in the command" in done.stderr and not world.calls()


@pytest.mark.parametrize(
    "options, message",
    [
        ((*RUN, "--", "jaxenc"), "give --tpu and --topology, or --nodes"),
        ((*RUN, *GPU, *TPU, "--", "jaxenc"), "give --tpu and --topology, or --nodes"),
        ((*RUN, "--tpu", "t", "--topology", "4", "--", "jaxenc"), "--topology is '4'"),
        ((*RUN, "--tpu", "t", "--topology", "3x3", "--", "jaxenc"), "9 chips, which hosts of 4 do not divide"),
        ((*RUN, "--nodes", "0", "--", "jaxenc"), "--nodes is '0'"),
        (("run", "--name", "r", "--workdir", "w", "--nodes", "1", "--", "jaxenc"), "--image is missing"),
        (("run", "--name", "R"), "--name is 'R'"),
    ],
)
def test_impossible_options_are_refused_in_one_line(world: World, options: tuple[str, ...], message: str) -> None:
    done = world.run("gke/jobset.sh", *options)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and message in done.stderr
    assert not world.calls()


def test_the_entry_point_reads_the_settings_of_its_accelerator(world: World) -> None:
    world.environment |= {"ACCELERATOR": "cpu"}
    assert world.run("docker/entrypoint.sh", "bash", "-c", 'echo "$JAX_PLATFORMS"').stdout == "cpu\n"
    assert Path(ROOT, "launch/docker/entrypoint.sh").stat().st_mode & 0o111, "the image runs it as a program"
