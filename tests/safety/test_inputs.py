"""How many damaged inputs there are, when they are the same, and that what they must not do is seen."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from tests.safety import damage
from tests.safety.damage import Edits, byte_edits, fuzzed, json_edits
from tests.selection import FULL

LEAST = 10_000


def test_as_many_inputs_as_we_say() -> None:
    sources = (path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    assert sum(int(number) for source in sources for number in re.findall(r"^@fuzzed\((\d+)\)$", source, re.M)) >= LEAST


def drawn(count: int) -> list[Edits]:
    found: list[Edits] = []

    @fuzzed(count)
    @given(edits=byte_edits() | json_edits())
    def keep(edits: Edits) -> None:
        found.append(edits)

    keep()
    return found


def test_the_short_suite_has_a_fifth_of_the_inputs_and_always_the_same() -> None:
    one, other = drawn(50), drawn(50)
    assert len(one) == (50 if FULL else 10) and (repr(one) == repr(other)) == (not FULL)


def forever() -> None:
    while True:
        pass


@pytest.mark.parametrize("bad, error", [(forever, AssertionError), (lambda: bytearray(2 * damage.MEMORY), MemoryError)])
def test_what_takes_too_long_or_too_much_is_seen(
    monkeypatch: pytest.MonkeyPatch, bad: Callable[[], object], error: type[BaseException]
) -> None:
    monkeypatch.setattr(damage, "SECONDS", 0.1)
    with pytest.raises(error), damage.bounded():
        bad()
