"""Which part of a text each stream walks, and where it stands at a step. What a row holds is not known here."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Walk:
    """A text of `size` tokens in `parts` neighbouring parts, as equal as they can be; each step goes `stride` tokens further.

    len: steps of an epoch. All streams walk in step: an epoch ends when the longest part is walked, so the last row of a part runs over
    into its neighbour, by less than a stride and one token.
    """

    size: int
    parts: int
    stride: int

    def __len__(self) -> int:
        longest = -(-self.size // self.parts)
        return -(-longest // self.stride)

    def at(self, step: int) -> tuple[int, int]:
        """(epoch, step within it) of a step of the run; a stream is fresh where the second is 0."""
        return divmod(step, len(self))

    def begins(self, parts: np.ndarray, step: int) -> np.ndarray:
        """Place where row `step` of an epoch begins in each of `parts` (int64 [n]), walked from left to right."""
        return parts * self.size // self.parts + step * self.stride

    def begins_reversed(self, parts: np.ndarray, step: int) -> np.ndarray:
        """As `begins`, walked from right to left: a place of the reversed text, where the text's place p is place -p."""
        return step * self.stride - (parts + 1) * self.size // self.parts
