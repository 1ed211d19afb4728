"""launch/env: what is set stays, sourcing twice changes nothing, and XLA knows the flags."""

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.launch.world import LAUNCH, World

KINDS = ("cpu", "gpu", "tpu")


def sourced(world: World, kind: str, times: int = 1, **settings: str) -> dict[str, str]:
    """The environment after sourcing launch/env/KIND.sh, without what bash adds."""
    text = f"set -euo pipefail; {f'source {LAUNCH}/env/{kind}.sh; ' * times}env -0"
    environment = {"PATH": world.environment["PATH"], "FAKES": str(world.folder)} | settings
    done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    found = dict(entry.partition("=")[::2] for entry in done.stdout.split("\0") if entry)
    return {name: value for name, value in found.items() if name not in (*environment.keys() - settings.keys(), "_", "SHLVL", "PWD")}


@pytest.mark.parametrize("kind", KINDS)
def test_reading_settings_twice_changes_nothing(world: World, kind: str) -> None:
    assert sourced(world, kind, times=2) == sourced(world, kind) != {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", ["", "mine"])
def test_what_is_set_stays(world: World, kind: str, value: str) -> None:
    mine = dict.fromkeys(sourced(world, kind), value)
    assert sourced(world, kind, **mine) == mine


@pytest.mark.parametrize("capability, expected", [("9.0\n9.0", "1"), ("10.0", None), ("8.0\n9.0", None)])
def test_one_queue_on_hopper_only(world: World, capability: str, expected: str | None) -> None:
    world.program("nvidia-smi", f"#!/bin/bash\necho '{capability}'\n")
    assert sourced(world, "gpu").get("CUDA_DEVICE_MAX_CONNECTIONS") == expected


def test_flags_between_slices_only_where_there_are_several(world: World) -> None:
    one, two = (sourced(world, "tpu", MEGASCALE_NUM_SLICES=count)["LIBTPU_INIT_ARGS"] for count in ("1", "2"))
    assert two.startswith(one) and "data_parallel" in two.removeprefix(one) and sourced(world, "tpu")["LIBTPU_INIT_ARGS"] == one


def starts(program: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""} | settings
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


DEVICES = "import jax; jax.devices()"


def test_the_xla_of_this_jax_knows_the_flags_of_gpus(world: World) -> None:
    """XLA reads the flags of GPUs in every build; one that it does not know ends the process."""
    assert starts(DEVICES, **sourced(world, "gpu")).returncode == 0
    unknown = starts(DEVICES, XLA_FLAGS=sourced(world, "gpu")["XLA_FLAGS"] + " --xla_gpu_no_such_flag=true")
    assert unknown.returncode != 0 and "Unknown flag in XLA_FLAGS" in unknown.stderr


def test_the_cpu_settings_start(world: World) -> None:
    assert starts(DEVICES, **sourced(world, "cpu")).returncode == 0


TOPOLOGY = 'from jax.experimental import topologies; topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")'


@pytest.mark.full
def test_libtpu_knows_its_flags(world: World) -> None:
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("libtpu is missing: pip install 'jaxenc[tpu]'")
    alone = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    flags = sourced(world, "tpu", MEGASCALE_NUM_SLICES="2")["LIBTPU_INIT_ARGS"]
    assert starts(TOPOLOGY, LIBTPU_INIT_ARGS=flags, **alone).returncode == 0
    unknown = starts(TOPOLOGY, LIBTPU_INIT_ARGS=f"{flags} --xla_tpu_no_such_flag=true", **alone)
    assert unknown.returncode != 0 and "xla_tpu_no_such_flag" in unknown.stdout + unknown.stderr
