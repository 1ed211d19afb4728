"""What one of several processes says of the error that ends it is whole."""

import io
import signal
import sys

import jax
import pytest

from jaxenc.cli.main import report_error
from jaxenc.processes import connection, gloo
from jaxenc.processes.cluster import Cluster


def test_a_request_to_stop_does_not_cut_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher sends TERM to the others when one dies, at the moment when they find that it is gone."""
    ends: list[str] = []

    def interrupt(number: int, frame: object) -> None:
        raise InterruptedError

    def report(error: BaseException) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
        ends.append(str(error))
        return 1

    for name in ("connect", "close", "leave"):
        monkeypatch.setattr(connection, name, lambda *given, name=name: ends.append(name))
    monkeypatch.setattr(gloo, "be_quiet", lambda: None)
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with connection.joined(Cluster("127.0.0.1:1", 2, 1), report):
            raise RuntimeError("process 0 is gone")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    # `leave` ends the process where it is not replaced.
    assert ends == ["connect", "process 0 is gone", "leave", "close"]


GLOO = (
    "UNKNOWN: Gloo all-reduce failed: [external/gloo/gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:38286: Connection reset by peer"
)


@pytest.mark.parametrize(
    "text, wanted",
    [
        (GLOO, "jaxenc: another process is gone (Connection reset by peer): see what it says, and start all processes again\n"),
        ("INTERNAL: Gloo got other sizes", "JaxRuntimeError: INTERNAL: Gloo got other sizes\n"),
    ],
)
def test_the_loss_of_another_process_is_one_line(
    text: str, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Any other error of jax's keeps its traceback."""
    codes: list[int] = []
    monkeypatch.setattr(connection, "connect", lambda cluster: None)
    monkeypatch.setattr(connection, "close", lambda: None)
    monkeypatch.setattr(connection, "leave", codes.append)
    monkeypatch.setattr(gloo, "be_quiet", lambda: None)
    with connection.joined(Cluster("127.0.0.1:1", 2, 1), lambda error: report_error(error, False)):
        raise jax.errors.JaxRuntimeError(text)
    said = capsys.readouterr().err
    assert codes == [1] and said.endswith(wanted) and ("Traceback" in said) == (text != GLOO)


class Pieces(io.StringIO):
    """What was written, one piece a call."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def write(self, text: str) -> int:
        self.pieces += [text] if text else []
        return len(text)


def test_a_traceback_is_written_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """jax may abort the process in the middle: a first line alone says nothing."""
    said = Pieces()
    monkeypatch.setattr(sys, "stderr", said)
    try:
        raise RuntimeError("INTERNAL")
    except RuntimeError as error:
        assert report_error(error, False) == 1
    (piece,) = said.pieces
    assert piece.startswith("Traceback (most recent call last):\n") and piece.endswith("RuntimeError: INTERNAL\n")
