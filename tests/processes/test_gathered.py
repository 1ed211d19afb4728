"""What every process says, in every process."""

import jax
import pytest

from jaxenc.errors import Absent
from jaxenc.processes import barriers, private
from tests.processes.service import Service


def test_one_process_gathers_its_own_value() -> None:
    assert barriers.gathered("alone", {"a": [1]}) == [{"a": [1]}]


def test_values_are_gathered_in_order_and_missing_processes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    monkeypatch.setattr(private, "store", lambda: service)
    monkeypatch.setattr(jax, "process_count", lambda: 12)
    for index in range(1, 12):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        with pytest.raises(Absent, match="process 0") as waited:
            barriers.gathered("facts", index, 0)
    assert "did not come within 0 s" in str(waited.value)
    monkeypatch.setattr(jax, "process_index", lambda: 0)
    service.values.pop("jaxenc/gathered/facts/1/7")
    with pytest.raises(Absent, match="facts: process 7 did not come"):
        barriers.gathered("facts", 0, 0)
    service.asked.clear()  # process 0 asks for the first time again
    service.values |= {"jaxenc/gathered/facts/1/7": "7"}
    service.values.pop("jaxenc/gathered/facts/1/0")
    assert barriers.gathered("facts", 0, 0) == list(range(12))
    assert service.values["jaxenc/gathered/facts/1/all"] == str(list(range(12)))
