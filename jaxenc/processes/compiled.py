"""JAX's persistent compilation cache, which commands turn on by default."""

import contextlib
import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from jaxenc import cache

FOLDER, SIZE = "JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE"
# Beyond it JAX deletes the least recently used programs. With a limit it also locks the folder, so no process reads half a program.
MAX_BYTES = 2 * 1024**3
# JAX's lock of the folder.
LOCK, LOCK_TIMEOUT_S = ".lockfile", 2.0


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that turn the cache on, for `environment`; call it before JAX is imported.

    {} where JAX_COMPILATION_CACHE_DIR is set, even to '', and where the folder cannot be made, for instance without a home. The folder is
    compiled/ in `cache.of_user`, with a subfolder for each kind of processor: XLA compiles for the one it runs on and does not check
    that it loads a program there (homes are often shared). A folder that the user names has no size limit, and so no lock, unless they set
    one; with one it is cleaned as ours is.
    """
    if FOLDER in environment:
        _clean_given(environment)
        return {}
    try:
        folder = cache.of_user(environment) / "compiled" / _processor()
        folder.mkdir(parents=True, exist_ok=True)
        if environment.get(SIZE) != "-1":
            _clean(folder)
    except (OSError, RuntimeError):  # RuntimeError: no home
        return {}
    wanted = {
        FOLDER: str(folder),
        SIZE: str(MAX_BYTES),
        # A start compiles many small programs.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return {name: value for name, value in wanted.items() if name not in environment}


def _clean_given(environment: Mapping[str, str]) -> None:
    """`_clean` of the user's folder where it is on this machine and has a limit."""
    folder = environment[FOLDER]
    if "://" not in folder and environment.get(SIZE, "-1") != "-1" and os.path.isdir(folder):
        with contextlib.suppress(OSError):
            _clean(Path(folder))


def _clean(folder: Path) -> None:
    """Deletes empty programs and those that a killed process left half-written: JAX would warn of them at every start, and keep them. Also
    those that were written without a size limit: JAX writes no program beside one that has no time of use.

    Without a size limit (-1) JAX writes no times of use, so half-written programs cannot be recognised.
    """
    try:
        with FileLock(folder / LOCK, timeout=LOCK_TIMEOUT_S):
            for program in folder.glob("*-cache"):
                # JAX writes the -atime file after the program, and holds the lock until then. A crash of the machine leaves empty files.
                if not program.stat().st_size or not program.with_name(program.name.removesuffix("-cache") + "-atime").exists():
                    program.unlink()
    except Timeout:
        pass


def _processor() -> str:
    """A name for this kind of processor: its architecture and a hash of its features."""
    features = platform.processor()
    if Path("/proc/cpuinfo").exists():
        with open("/proc/cpuinfo") as lines:
            features = next((line for line in lines if line.lower().startswith(("flags", "features"))), features)
    return f"{platform.machine() or os.name}-{hashlib.sha256(features.encode()).hexdigest()[:12]}"
