"""Whether every process runs the same code: libraries, jaxenc itself, and the variables that change what is compiled."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxenc.findings import OK, PROBLEM, WARNING, Finding, by_value
from jaxenc.processes.versions import source, version

CHECK = "versions"
PACKAGES = (
    "jaxenc", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "tensorstore", "numpy", "libtpu",
    "jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt", "jax-rocm7-plugin",
)  # fmt: skip
# Always shown; the others where they differ.
SHOWN = ("jaxenc", "code", "jax", "jaxlib", "python")
# Read by XLA, libtpu and jax when they compile: programs that differ wait for one another for ever.
FLAGS = (
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "JAX_OPTIMIZATION_LEVEL",
    "JAX_ENABLE_X64",
    "NVIDIA_TF32_OVERRIDE",
)


def gather(environment: Mapping[str, str]) -> dict[str, str]:
    """{name: version} of what this process runs; '' for a package that is not installed and a variable that is not set."""
    versions = {name: version(name) for name in PACKAGES}
    own = {"code": source(), "python": platform.python_version(), "nvidia driver": _driver()}
    return {**versions, **own, **{name: environment.get(name, "") for name in FLAGS}}


def judge(facts: Sequence[Mapping[str, str]]) -> list[Finding]:
    """facts: of `gather`, of each process."""
    found = []
    for name in facts[0]:
        values = [one.get(name, "") for one in facts]
        if len(set(values)) > 1:
            level, fix = (WARNING, "set it alike in every process") if name in FLAGS else (PROBLEM, _advice(name, values[0]))
            what = "code of jaxenc (hash)" if name == "code" else name
            found.append(Finding(level, CHECK, f"{what}: {by_value(values)}", fix))
    if found:
        return found
    own = ", ".join(f"{name} {facts[0][name]}" for name in SHOWN if facts[0].get(name))
    return [Finding(OK, CHECK, own + (f", the same in {len(facts)} processes" if len(facts) > 1 else ""))]


def _advice(name: str, first: str) -> str:
    if name == "code":
        return "copy one version of jaxenc to every host"
    if name in ("python", "nvidia driver"):
        return "use one image on every host"
    return f"install it alike on every host, such as `pip install {name}=={first}`" if first else f"run `pip uninstall {name}` where it is"


def _driver() -> str:
    path = Path("/sys/module/nvidia/version")
    return path.read_text().strip() if path.is_file() else ""
