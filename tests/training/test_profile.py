"""The lines that say how to open a trace. tests/cli/test_terminal.py traces a run."""

from pathlib import Path

from jaxenc import storage
from jaxenc.training import profile

TRACE = f"plugins/profile/2026_11_30/{profile.TRACE}"


def test_a_trace_on_this_machine(tmp_path: Path) -> None:
    assert profile.how_to_open(tmp_path) == ""
    path = tmp_path / profile.FOLDER / TRACE
    path.parent.mkdir(parents=True)
    path.touch()
    board, trace = profile.how_to_open(tmp_path).splitlines()
    assert f"--logdir {tmp_path / profile.FOLDER} " in board and str(path) in trace


def test_a_trace_at_a_url() -> None:
    url = "memory://traces/run"
    assert profile.how_to_open(url) == ""
    storage.folder(url).write(f"{profile.FOLDER}/{TRACE}", b"")
    (line,) = profile.how_to_open(url).splitlines()
    assert line.startswith(f"profile: {url}/{profile.FOLDER} ") and "tensorboard --logdir" in line
