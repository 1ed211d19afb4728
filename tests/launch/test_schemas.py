"""What jobset.sh renders, against the published schemas: Kubernetes' Job (kubernetes-validate) and JobSet (kubeflow-trainer-api)."""

import importlib
import importlib.util
from typing import Any

import pytest

from tests.launch.test_gke import GPU, TPU, manifest
from tests.launch.world import World

pytestmark = pytest.mark.full
KINDS = pytest.mark.parametrize("options", [GPU, (*GPU, "--spot"), TPU, (*TPU, "--spot"), ("--nodes", "1"), ("--nodes", "4")])


def module(name: str) -> Any:
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name} is missing: pip install 'jaxenc[launch]' (bash tests/run.sh --full does)")
    return importlib.import_module(name)


def in_jobset(found: dict[str, Any]) -> dict[str, Any]:
    """The document after the model of JobSet, generated from its definition, has read it: unknown fields are gone, wrong types raise."""
    model = module("kubeflow_trainer_api.models").JobsetV1alpha2JobSet
    return model.from_dict(found).to_dict()


@KINDS
def test_jobset_knows_every_field(world: World, options: tuple[str, ...]) -> None:
    found = manifest(world, *options)
    assert in_jobset(found) == found
    found["spec"]["failurePolicy"]["rule"] = []
    assert in_jobset(found) != found


@KINDS
def test_kubernetes_knows_every_field_of_the_job(world: World, options: tuple[str, ...]) -> None:
    """Strictly: an unknown field is an error, which the JobSet's own definition passes on to the Job."""
    validate = module("kubernetes_validate")
    (replicated,) = manifest(world, *options)["spec"]["replicatedJobs"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "r"}, "spec": replicated["template"]["spec"]}
    validate.validate(job, "1.33", strict=True)
    job["spec"]["podFailurePolicy"]["rules"][0]["onExitCode"] = {}
    with pytest.raises(validate.ValidationError):
        validate.validate(job, "1.33", strict=True)
