"""Lines on stderr that say how far the reading is."""

import re

import pytest

from jaxenc.data import readers
from jaxenc.data.readers import Counts, Reading, progress


class Clock:
    """Time that goes on by `step` seconds each time it is asked for."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def monotonic(self):
        self.now += self.step
        return self.now


@pytest.fixture
def ticks(monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(6.0))


def test_the_share_of_the_bytes_and_the_time_that_is_left(tmp_path, ticks, capsys):
    """Two files of the same size, of whose first one every document takes 6 seconds."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(("x" * 99_998 + "\n\n") * 20)
    sources = readers.inputs([str(tmp_path)], Reading(), Counts())
    assert len(list(readers.watched(sources, Reading(), Counts(), "data"))) == 40
    said = capsys.readouterr().err.splitlines()
    shares = [int(re.search(r"of 4 MB \((\d+)%\)", line)[1]) for line in said if "%" in line]
    assert shares == sorted(shares) and 50 in shares and all(line.startswith("data: ") for line in said)
    # What is read is a block ahead of the eleventh document.
    assert next(line for line in said if "(50%)" in line) == "data: 2 of 4 MB (50%), 1.1 M characters read, 0.0 M a second, about 66 s left"


def test_without_sizes_there_is_a_speed_alone(capsys, ticks):
    seen = progress.reported([], "x", progress.Progress(0))
    assert list(seen) == []
    document = readers.Document("a", ("b" * 10**6,))
    assert list(progress.reported([document], "tokenizer", progress.Progress(0))) == [document]
    assert capsys.readouterr().err == "tokenizer: 1.0 M characters read, 0.2 M a second\n"


@pytest.mark.parametrize("seconds, said", [(0.2, "1 s"), (89, "89 s"), (121, "2 min"), (7300, "2 h 2 min")])
def test_durations(seconds, said):
    assert progress._duration(seconds) == said
