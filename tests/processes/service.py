"""The coordination service's key-value store, without processes."""

from collections import Counter

import jax


class Service:
    """What several processes see of it, one after the other; a process that waits for a key that is not there hears that time is over."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.asked: Counter[str] = Counter()

    def key_value_increment(self, key: str, by: int) -> int:
        self.asked[key] += by
        return self.asked[key]

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        assert allow_overwrite or key not in self.values
        self.values[key] = value

    def key_value_dir_get(self, folder: str) -> list[tuple[str, str]]:
        return [(key, value) for key, value in self.values.items() if key.startswith(folder)]

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        if key not in self.values:
            raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED")
        return self.values[key]
