"""The capability of a model of two networks: a generator that replaces tokens and a discriminator that reads the result."""

import dataclasses
from typing import Protocol, runtime_checkable

from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder


@dataclasses.dataclass(frozen=True)
class Networks:
    """The two encoders of a pair, which share one parameter tree. Parameters that only the generator needs are under `generator`: without
    that branch it is a tree of the discriminator."""

    generator: Encoder
    discriminator: Encoder


@runtime_checkable
class NetworkPair(Protocol):
    """The config of a model of two networks."""

    @property
    def of_generator(self) -> tuple[str, ...]:
        """Dotted paths of the fields that only the generator uses, each with the prefix `model.`."""
        ...

    def networks(self, execution: Execution) -> Networks:
        """Both encoders. Raises UserError where they cannot share the parameters that the config says they share."""
        ...
