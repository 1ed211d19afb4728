"""Fills in jobset.yaml from the options of jobset.sh and prints it. Python's standard library only."""

import argparse
import json
import math
import string
import sys
from pathlib import Path

PORT = 8476  # of process 0, in its own pod


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in ("name", "image", "account", "tpu", "topology", "gpu"):
        parser.add_argument(f"--{option}", default="")
    for option in ("slices", "chips-per-host", "nodes", "gpus-per-node", "restarts"):
        parser.add_argument(f"--{option}", type=int, required=True)
    parser.add_argument("--spot", action="store_true")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def tpu(given: argparse.Namespace) -> dict[str, object]:
    """Slices of TPUs: a Job a slice, a pod a host. GKE tells each pod its place (TPU_WORKER_ID, TPU_WORKER_HOSTNAMES, MEGASCALE_*)."""
    chips = math.prod(int(side) for side in given.topology.split("x"))
    if chips % given.chips_per_host:
        said = f"jobset: --topology {given.topology} has {chips} chips, which hosts of {given.chips_per_host} do not divide"
        print(said, file=sys.stderr)
        sys.exit(2)
    return {
        # Each slice has a node pool to itself.
        "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"},
        "slices": given.slices,
        "hosts": chips // given.chips_per_host,
        "selector": {"cloud.google.com/gke-tpu-accelerator": given.tpu, "cloud.google.com/gke-tpu-topology": given.topology},
        "limits": {"google.com/tpu": given.chips_per_host},
        "env": [],
    }


def nodes(given: argparse.Namespace) -> dict[str, object]:
    """Nodes with GPUs or CPUs: one Job, one pod a node, one process a pod with all its GPUs. JOB_COMPLETION_INDEX is its rank."""
    env = {"JAXENC_PROCESSES": str(given.nodes)}
    if given.nodes > 1:
        # The first pod of the first Job; JobSet names pods and publishes the names before the pods are ready.
        env["JAXENC_COORDINATOR"] = f"{given.name}-workers-0-0.{given.name}:{PORT}"
    return {
        "annotations": {},
        "slices": 1,
        "hosts": given.nodes,
        "selector": {"cloud.google.com/gke-accelerator": given.gpu} if given.gpu else {},
        "limits": {"nvidia.com/gpu": given.gpus_per_node} if given.gpu else {},
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }


def main() -> None:
    given = arguments()
    values = tpu(given) if given.tpu else nodes(given)
    selector, tolerations = dict(values["selector"]), []
    if given.spot:
        selector["cloud.google.com/gke-spot"] = "true"
        tolerations.append({"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"})
    if given.gpu:
        tolerations.append({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})
    values |= {
        "name": given.name,
        "restarts": given.restarts,
        "image": given.image,
        "account": given.account or "default",
        "selector": selector,
        "tolerations": tolerations,
        # Kubernetes reads $(NAME) as a variable and $$ as one dollar.
        "command": [word.replace("$", "$$") for word in given.command],
    }
    template = string.Template(Path(__file__).with_name("jobset.yaml").read_text())
    # YAML has no pairs of surrogates, as JSON in ASCII writes an emoji.
    written = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    print(template.substitute(written), end="")


if __name__ == "__main__":
    main()
