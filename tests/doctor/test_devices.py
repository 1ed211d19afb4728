"""What JAX uses, beside what the machines have."""

import dataclasses
import json
from pathlib import Path

import jax
import pytest

from jaxenc.doctor import devices
from jaxenc.doctor.accelerators import Present
from jaxenc.doctor.devices import Devices
from jaxenc.findings import OK, PROBLEM, WARNING, Finding
from tests.doctor.test_accelerators import H200, V5E, machine

NONE = Present(0, 0, 0, 0)
TWO_GPUS, FOUR_CHIPS = Present(2, 2, 0, 0), Present(0, 0, 4, 4)
CPU = Devices("a", "cpu", "cpu", 1, 0, NONE, (), {}, 0)
GPU = Devices("a", "gpu", "NVIDIA H200", 2, 2 * 10**11, TWO_GPUS, ("xla_cuda13",), {}, 1 << 34)
TPU = Devices("a", "tpu", "TPU v5 lite", 4, 4 * 17 * 10**9, FOUR_CHIPS, ("libtpu",), {}, 0)


def of(base: Devices, **changed: object) -> Devices:
    return dataclasses.replace(base, **changed)


def worst(*facts: Devices) -> Finding:
    """The first finding that is not ok, else the first."""
    found = devices.judge(facts)
    return next((one for one in found if one.level != OK), found[0])


@pytest.mark.parametrize(
    "facts",
    [
        (CPU, CPU), (GPU,), (TPU,), (of(TPU, count=8),), (TPU, of(TPU, host="b")),
        (of(GPU, count=1, variables={"CUDA_VISIBLE_DEVICES": "0"}), of(GPU, count=1, variables={"CUDA_VISIBLE_DEVICES": "1"})),
    ],
    ids=["CPUs", "two GPUs", "four chips", "two devices a chip", "two hosts", "a process a GPU"],
)  # fmt: skip
def test_a_machine_whose_devices_are_all_used_has_no_problem(facts: tuple[Devices, ...]) -> None:
    assert [one.level for one in devices.judge(facts)] == [OK]


def test_a_gpu_says_its_memory() -> None:
    assert worst(GPU).what == "2 x NVIDIA H200, 100.0 GB of memory each"
    assert worst(GPU, of(GPU, host="b")).what == "4 x NVIDIA H200, 2 a process, 100.0 GB of memory each"


@pytest.mark.parametrize(
    "facts, fix",
    [
        (of(CPU, present=TWO_GPUS), "pip install 'jaxenc[cuda]'"),
        (of(CPU, present=TWO_GPUS, variables={"JAX_PLATFORMS": "cpu"}), "JAX_PLATFORMS=cpu hides them: unset it"),
        (of(GPU, platform="cpu", variables={"JAX_PLATFORMS": "cpu"}), "JAX_PLATFORMS=cpu hides them: unset it"),
        (of(GPU, platform="cpu", variables={"CUDA_VISIBLE_DEVICES": ""}), "CUDA_VISIBLE_DEVICES='' hides them: unset it"),
        (of(GPU, platform="cpu", variables={"CUDA_VISIBLE_DEVICES": "-1"}), "CUDA_VISIBLE_DEVICES='-1' hides them: unset it"),
        (of(GPU, platform="cpu", variables={"CUDA_VISIBLE_DEVICES": "0,1"}), "run `nvidia-smi`"),
        (of(GPU, platform="cpu", variables={"JAX_PLATFORMS": "cuda,cpu"}), "run `nvidia-smi`"),
        (of(CPU, present=FOUR_CHIPS), "pip install 'jaxenc[tpu]'"),
        (of(CPU, present=FOUR_CHIPS, plugins=("xla_cuda13",)), "pip install 'jaxenc[tpu]'"),
        (of(TPU, platform="cpu", variables={"JAX_PLATFORMS": "cpu"}), "JAX_PLATFORMS=cpu hides them: unset it"),
        (of(TPU, platform="cpu"), "end other processes that hold the chips"),
    ],
)
def test_accelerators_that_jax_does_not_see_are_a_problem_with_the_reason(facts: Devices, fix: str) -> None:
    said = worst(facts)
    assert said.level == PROBLEM and "there, and JAX uses CPU only in process 0" in said.what and fix in said.fix


def test_fewer_than_there_are_is_a_warning_where_a_variable_chose_and_else_a_problem() -> None:
    said = worst(of(GPU, count=1))
    assert said.level == PROBLEM and said.what == "2 x NVIDIA GPU there, and the processes use 1"
    said = worst(of(GPU, count=1, variables={"CUDA_VISIBLE_DEVICES": "1"}))
    assert said.level == WARNING and "CUDA_VISIBLE_DEVICES" in said.fix


def test_a_card_that_several_processes_open_is_a_problem() -> None:
    said = worst(GPU, GPU)
    assert said.level == PROBLEM and "processes 0, 1 open 4 in all" in said.what and "CUDA_VISIBLE_DEVICES" in said.fix
    assert (
        worst(
            of(GPU, kind="NVIDIA H100 MIG 1g.10gb", count=1, present=Present(1, 1, 0, 0)), of(GPU, kind="NVIDIA H100 MIG 1g.10gb", count=1)
        ).level
        == OK
    )


def test_a_card_on_the_bus_alone_is_a_warning() -> None:
    said = worst(of(CPU, present=Present(0, 1, 0, 0)))
    assert said.level == WARNING and "PCI bus" in said.what and "driver" in said.fix


def test_processes_with_other_devices_are_named() -> None:
    lone = of(GPU, present=NONE)
    said = worst(lone, of(CPU, host="b"), of(lone, host="c"))
    assert said.level == PROBLEM and said.what == "platform: gpu in processes 0, 2, cpu in process 1"
    assert worst(lone, of(lone, host="b", count=1)).what == "devices: 2 in process 0, 1 in process 1"
    said = worst(lone, of(lone, host="b", kind="NVIDIA A100"))
    assert said.level == WARNING and "NVIDIA A100, NVIDIA H200" in said.what


def test_a_small_dev_shm_is_a_warning_where_nccl_uses_it() -> None:
    assert worst(of(GPU, shm=64 << 20)).level == WARNING and "--shm-size" in worst(of(GPU, shm=64 << 20)).fix
    assert worst(of(GPU, shm=64 << 20, count=1, present=Present(1, 1, 0, 0))).level == OK


@pytest.mark.parametrize(
    "error, environment, what, fix",
    [
        (
            AssertionError(),
            {"JAX_PLATFORMS": "cuda"},
            "with JAX_PLATFORMS=cuda (it has no such backend)",
            "pip install 'jaxenc[cuda]', or unset",
        ),
        (
            RuntimeError("Unable to initialize backend 'tpu': none"),
            {"JAX_PLATFORMS": "tpu,cpu"},
            "backend 'tpu': none)",
            "'jaxenc[tpu]', or unset",
        ),
        (RuntimeError("Unable to initialize backend 'cuda': none"), {}, "does not start (Unable", "JAX_DEBUG_LOG_MODULES"),
    ],
)
def test_a_backend_that_does_not_start_is_a_problem(error: Exception, environment: dict[str, str], what: str, fix: str) -> None:
    (said,) = devices.refused(error, environment)
    assert said.level == PROBLEM and what in said.what and fix in said.fix


@pytest.mark.parametrize("error", [AssertionError("ours"), RuntimeError("other"), ValueError("Unable to initialize backend")])
def test_other_errors_are_not_about_backends(error: Exception) -> None:
    assert devices.refused(error, {"JAX_PLATFORMS": "cuda"}) == []


def test_the_devices_of_this_process(tmp_path: Path) -> None:
    """Planted: card and chips that only the file system shows. As JSON between processes."""
    root = machine(tmp_path, ["nvidia0", "accel0"], [H200, V5E])
    own = devices.gather("a", {"JAX_PLATFORMS": "cpu", "HOME": "/"}, root)
    assert (own.platform, own.count, own.variables) == ("cpu", jax.local_device_count(), {"JAX_PLATFORMS": "cpu"})
    assert own.present == Present(1, 1, 1, 1) and own.memory > 1e9
    assert devices.of_json(json.loads(json.dumps(dataclasses.asdict(own)))) == own
    problems = [one for one in devices.judge([own]) if one.level == PROBLEM]
    assert [one.what.partition(" there")[0] for one in problems] == ["1 x NVIDIA GPU", "1 x TPU chip"]
    assert all("JAX_PLATFORMS=cpu hides them" in one.fix for one in problems)
