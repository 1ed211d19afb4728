"""What every process says, in every process."""

import jax
import pytest
from jax._src import distributed

from jaxenc.errors import Absent
from jaxenc.processes import barriers


class Service:
    """The coordination service's store; a process that waits for a key that is not there hears that time is over."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def key_value_set(self, key: str, value: str) -> None:
        assert key not in self.values
        self.values[key] = value

    def key_value_dir_get(self, folder: str) -> list[tuple[str, str]]:
        return [(key, value) for key, value in self.values.items() if key.startswith(folder)]

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        if key not in self.values:
            raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED")
        return self.values[key]


def test_one_process_hears_itself() -> None:
    assert barriers.gathered("alone", {"a": [1]}) == [{"a": [1]}]


def test_all_hear_all_in_order_and_who_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    monkeypatch.setattr(distributed.global_state, "client", service)
    monkeypatch.setattr(jax, "process_count", lambda: 12)
    for index in range(1, 12):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        with pytest.raises(Absent, match="process 0") as waited:
            barriers.gathered("facts", index, 0)
    assert "did not come within 0 s" in str(waited.value)
    monkeypatch.setattr(jax, "process_index", lambda: 0)
    service.values.pop("jaxenc/gathered/facts/7")
    with pytest.raises(Absent, match="facts: process 7 did not come"):
        barriers.gathered("facts", 0, 0)
    service.values |= {"jaxenc/gathered/facts/7": "7"}
    service.values.pop("jaxenc/gathered/facts/0")
    assert barriers.gathered("facts", 0, 0) == list(range(12))
    assert service.values["jaxenc/gathered/facts/all"] == str(list(range(12)))
