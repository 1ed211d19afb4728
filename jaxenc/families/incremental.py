"""The capability of incremental decoding: an encoder that reads a text in parts, with a cache of earlier keys and values."""

from typing import Protocol, runtime_checkable

from jaxenc.execution import Execution
from jaxenc.layers.cache import Cache


@runtime_checkable
class Incremental(Protocol):
    """The config of a model whose encoder takes `cache` in `contract.Encoder.apply`."""

    def empty_cache(self, execution: Execution, batch: int, places: int) -> tuple[Cache, ...]:
        """A cache for texts of at most `places` tokens, one of zeros for each layer of the encoder that the head `next_token` reads."""
        ...
