"""How this process allocates memory; commands set it once, at their start."""

import ctypes
import importlib.util
import platform
from collections.abc import Mapping

# From glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8


def keep_freed(environment: Mapping[str, str]) -> bool:
    """Makes malloc keep freed memory for the next allocation instead of returning it to the system. Returns whether it did.

    XLA allocates the temporary buffers of a program on the CPU at every call. glibc maps such large blocks and unmaps them again, so each
    step faults in every page and the kernel zeroes it: 28 % of the CPU time of a step of bert/tiny on one core, 15 % for bert/small on two
    (jax 0.10.2). It costs memory, since free blocks between used ones do not always fit the next request and are never returned: at most
    1.4 GB instead of 0.9 for bert/tiny, 3.0 instead of 1.9 for bert/small, 5.6 instead of 4.3 for bert/base (8 rows of 128).

    Call it before JAX starts its threads. It changes nothing and returns False if JAX may use an accelerator, with another C library than
    glibc, and if `environment` configures malloc already (GLIBC_TUNABLES, MALLOC_...).
    """
    chosen = any(name.startswith("MALLOC_") for name in environment) or "malloc" in environment.get("GLIBC_TUNABLES", "")
    if chosen or platform.libc_ver()[0] != "glibc" or not _on_cpu(environment):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    # One arena: those of other threads hold at most 64 MB a block and map larger ones whatever M_MMAP_MAX is. -1: never trim.
    return all([mallopt(M_ARENA_MAX, 1), mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, -1)])


def _on_cpu(environment: Mapping[str, str]) -> bool:
    """Whether JAX can only use the CPU. It does not ask JAX, which would start its threads."""
    accelerators = any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))
    return environment.get("JAX_PLATFORMS", "" if accelerators else "cpu") == "cpu"
