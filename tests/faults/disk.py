"""Small disks, which only root may mount."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root may mount a small disk")


@contextlib.contextmanager
def disk(folder: Path, size: int) -> Iterator[None]:
    """The new `folder` as a disk of its own, of `size` bytes."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
