"""Bars on a terminal, and nothing of them anywhere else."""

import io
import os
import signal
import subprocess
import sys
from unittest import mock

import pytest

from jaxenc import progress
from jaxenc.progress import BYTES, Bar, Bars, clock
from tests.terminal import CONTROL, kept, terminal


def at(bar: Bar, *moments: tuple[float, float]) -> None:
    """Sets `done` at the seconds since the bar began."""
    began = bar._began
    for seconds, done in moments:
        with mock.patch.object(progress.time, "monotonic", return_value=began + seconds):
            bar.at(done)


def test_a_bar_says_what_how_much_since_when_and_how_long() -> None:
    bar = Bar("training", 200, "steps", 100, "")
    # The first change ends the preparation: 10 steps in 5 seconds since then.
    at(bar, (60, 110), (65, 120))
    now = bar._began + 65
    assert bar.line(now, 79) == "training  ━━━━━━━━━───────  120 of 200 steps (60%)  0:01:05, about 0:00:40 left"
    assert bar.line(now, 62) == "training  120 of 200 steps (60%)  0:01:05, about 0:00:40 left"
    assert all(len(bar.line(now, width)) <= width for width in range(8, 200))


def test_a_bar_without_a_total_turns_and_counts() -> None:
    bar = Bar("predict", 0, "examples", 0, "slow")
    lines = {bar.line(bar._began + seconds, 79)[0] for seconds in (0, 0.5, 1, 1.5)}
    assert len(lines) == 4
    bar.add(1200)
    assert bar.line(bar._began + 3, 79)[2:] == "predict  1,200 examples  0:00:03  slow"
    assert Bar("data", 5e9, BYTES, 2e9, "").line(0.0, 79).count("2,000.0 of 5,000.0 MB (40%)") == 1


def test_the_rate_is_that_of_this_start() -> None:
    """A run that resumes at 900 of 1000 has not taken 900 steps now; and nothing is known before the second report."""
    bar = Bar("training", 1000, "steps", 900, "")
    assert bar.left(bar._began + 50) == 0
    at(bar, (50, 901))
    assert bar.left(bar._began + 50) == 0
    at(bar, (60, 911))
    assert bar.left(bar._began + 60) == pytest.approx(89)


def test_times() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 3600 * 30 + 61)] == ["0:00:00", "0:01:00", "30:01:01"]


def work(bars: Bars) -> None:
    with bars.shown("outer", 2, "things") as bar:
        print("one [MASK] :smile:", file=sys.stderr)
        with bars.shown("inner"):
            print("two", "x" * 200)
            if bars._live:
                bars._live.refresh()  # as the thread does
        bar.add()
    print("end", file=sys.stderr)


def test_lines_stay_whole_above_the_bars_and_no_bar_stays() -> None:
    with terminal() as written:
        work(Bars())
    text = written()
    assert "outer" in text and "inner" in text and "0 of 2 things" in text
    assert "\x1b[?25l" not in text, "the cursor was hidden: a killed process would leave it so"
    assert kept(text) == ["one [MASK] :smile:", "two " + "x" * 200, "end"]


def test_stdout_in_a_file_gets_its_lines(capsys: pytest.CaptureFixture) -> None:
    with terminal(stdout=False) as written:
        work(Bars())
    assert capsys.readouterr().out == f"two {'x' * 200}\n" and "xxx" not in written()


@pytest.mark.parametrize("primary", [True, False])
def test_a_file_gets_lines_only(primary: bool, capsys: pytest.CaptureFixture) -> None:
    work(Bars(primary))
    assert capsys.readouterr() == (f"two {'x' * 200}\n", "one [MASK] :smile:\nend\n")


def test_other_processes_dumb_terminals_and_inner_owners_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal() as written:
        work(Bars(primary=False))
        with Bars().shown("mine"), Bars().shown("of a library") as bar:
            assert not bar.drawn
        monkeypatch.setenv("TERM", "dumb")
        with Bars().shown("dumb") as bar:
            assert not bar.drawn
    assert "outer" not in written() and "mine" in written() and "of a library" not in written() and "dumb" not in written()


def test_after_an_error_the_terminal_is_as_before() -> None:
    with terminal() as written:
        stream = sys.stderr
        with pytest.raises(ValueError), Bars().shown("outer"):
            raise ValueError
        assert sys.stderr is stream
    assert kept(written()) == []


def test_a_killed_process_leaves_the_cursor() -> None:
    """SIGKILL, at which nothing can be put back."""
    main, side = os.openpty()
    code = "from jaxenc import progress; import signal\nprogress.YOUNG = 0.0\nwith progress.Bars().shown('working'): signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=side, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"})
    os.close(side)
    text = b""
    while b"working" not in text:
        text += os.read(main, 1 << 16)
    child.send_signal(signal.SIGKILL)
    assert child.wait(60) == -signal.SIGKILL and b"\x1b[?25l" not in text
    os.close(main)


def test_a_bar_on_ascii_is_ascii() -> None:
    assert Bar("x", 10, "y", 5, "").line(0.0, 79, "#", "-").isascii()
    with mock.patch.object(sys, "stderr", io.StringIO()), Bars().shown("x") as bar:
        assert not bar.drawn and CONTROL not in sys.stderr.getvalue()
