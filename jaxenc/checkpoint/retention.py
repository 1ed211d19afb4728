"""When a run saves and what it keeps."""

import dataclasses

from jaxenc.config import at_least


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """every: steps between two checkpoints, 0 = only after the last step or at a request to stop.

    keep: how many of the newest steps stay, at least 1.
    keep_every: steps that are multiples of it stay for good; 0 keeps none for good.
    verify: read every byte of a checkpoint against its checksums before it is restored; False compares names and sizes only.
    """

    every: int = 1000
    keep: int = 3
    keep_every: int = 0
    verify: bool = True

    def __post_init__(self) -> None:
        at_least(1, "checkpoint", self, "keep")
        at_least(0, "checkpoint", self, "every", "keep_every")
