"""Worker processes end with their parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxenc.data import workers
from jaxenc.errors import UserError

KILLED = """
import os, signal
from jaxenc.data import workers

if __name__ == "__main__":
    with workers.pool(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_command_leaves_no_worker(tmp_path: Path) -> None:
    """The worker holds the write ends of our pipes until it ends, so reading them to the end waits for it."""
    (tmp_path / "killed.py").write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": str(Path(workers.__file__).parents[2])}
    done = subprocess.run([sys.executable, str(tmp_path / "killed.py")], capture_output=True, timeout=300, env=environment)
    assert done.returncode == -signal.SIGKILL and done.stdout


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(UserError, match="a worker process died"), workers.pool(1) as pool:
        pool.submit(os._exit, 1).result()
