"""A model that is two networks: one replaces tokens of a row, the other reads what it made."""

import dataclasses
from typing import Protocol, runtime_checkable

from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder


@dataclasses.dataclass(frozen=True)
class Networks:
    """The two encoders of a pair, which read one parameter tree. What only the generator needs lies below `generator`, so a tree without
    that branch is the discriminator's alone."""

    generator: Encoder
    discriminator: Encoder


@runtime_checkable
class NetworkPair(Protocol):
    """The config of such a model."""

    @property
    def of_generator(self) -> tuple[str, ...]:
        """Dotted paths of its fields, `model.` before each, that the discriminator does not read."""
        ...

    def networks(self, execution: Execution) -> Networks:
        """Both encoders. Raises UserError where they cannot share what they are told to."""
        ...
