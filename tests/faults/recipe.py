"""The run of one objective that is killed and started again, in its file in `recipes/`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from jaxenc.training.run import Run


@dataclasses.dataclass(frozen=True)
class Recipe:
    """run: of a data folder of 24 tokens a row at most, in seconds; tokenizer: of the data; prepare: makes beside the data folder what the
    run needs besides."""

    run: Callable[[Path], Run]
    tokenizer: str = "wordpiece"
    prepare: Callable[[Path], object] = lambda data: None
