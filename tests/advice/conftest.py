"""Errors know the place of the call that made them, and a run in one process says how many of those calls its tests reached."""

from collections.abc import Iterator

import pytest

from tests.advice import following


@pytest.fixture(scope="session", autouse=True)
def places() -> Iterator[None]:
    with following.noting_places():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if following.FOLLOWED:
        known = following.calls()
        terminalreporter.write_line(f"advice: followed at {len(following.FOLLOWED & known)} of the {len(known)} places that give any")
