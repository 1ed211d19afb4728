"""The settings of checkpoints."""

import dataclasses
from collections.abc import Sequence

from jaxenc.config import at_least


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """When a run saves and what it keeps.

    every: steps between two checkpoints; 0 = only after the last step or at a request to stop.
    keep: how many of the newest checkpoints stay, at least 1.
    keep_every: checkpoints at multiples of this step stay for good; 0 = none.
    verify: before a restore, compare every byte of a checkpoint with its checksum; false compares names and sizes only.
    """

    every: int = 1000
    keep: int = 3
    keep_every: int = 0
    verify: bool = True

    def __post_init__(self) -> None:
        at_least(1, "checkpoint", self, "keep")
        at_least(0, "checkpoint", self, "every", "keep_every")


def outlived(steps: Sequence[int], config: CheckpointConfig, saved: int) -> list[int]:
    """Those of `steps`, in ascending order, that neither `keep` nor `keep_every` keeps, but never the one just saved."""
    every = config.keep_every
    return [step for step in steps[: -config.keep] if step != saved and not (every and step % every == 0)]
