"""Freed memory is kept: a compiled program that runs again faults in no pages again."""

import os
import platform
import statistics
import subprocess
import sys

import pytest

from jaxenc.cli import main as command
from jaxenc.processes import memory

# The step keeps two activations of 64 MB, which are 32,768 pages. It prints the page faults of each of ten later calls. A few of
# them may grow the heap, where free blocks do not fit, and the rest of the process may fault in a few pages at any time.
PROGRAM = """
import os, resource
from jaxenc.processes import memory
print(memory.keep_freed(os.environ))
import jax, jax.numpy as jnp
step = jax.jit(jax.grad(lambda w, x: jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w.T))))
w, x = jnp.ones((16, 2048)), jnp.ones((8192, 16))
for call in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step(w, x).block_until_ready()
    if call > 1:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is configured on glibc only")


def _run(environment: dict[str, str]) -> tuple[str, list[int]]:
    own = {name: value for name, value in os.environ.items() if name not in ("GLIBC_TUNABLES", "XLA_FLAGS", "MALLOC_ARENA_TEST")}
    given = {**own, "JAX_PLATFORMS": "cpu", **environment}
    kept, *faults = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, check=True).stdout.split()
    return kept, [int(count) for count in faults]


@glibc
def test_a_program_that_runs_again_faults_in_no_pages() -> None:
    kept, faults = _run({})
    assert kept == "True" and statistics.median(faults) < 500


@glibc
def test_malloc_as_the_user_configured_it_is_left_alone() -> None:
    kept, faults = _run({"MALLOC_TOP_PAD_": "131072"})
    assert kept == "False" and min(faults) > 10_000
    assert not memory.keep_freed({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "JAX_PLATFORMS": "cpu"})


def test_malloc_is_left_alone_beside_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """It serves the copies of checkpoints there, and no step."""
    monkeypatch.setattr(memory.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(memory.importlib.util, "find_spec", lambda name: name == "jax_plugins")
    assert not memory.keep_freed({}) and not memory.keep_freed({"JAX_PLATFORMS": "cuda"})


def test_commands_that_compute_keep_freed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others may run threads that allocate much, such as those of a tokenizer."""
    called = []
    monkeypatch.setattr(command.memory, "keep_freed", lambda environment: called.append(environment is os.environ))
    assert command.main(["bench", "step", "--config", "bert/tiny", "--steps", "0"]) == 2 and called == [True]
    assert command.main(["report", "no-such-run", "--out", "x"]) == 2 and called == [True]
