"""What a file in `recipes/` states: the run of one objective, which tests kill and start again."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from jaxenc.training.run import Run


@dataclasses.dataclass(frozen=True)
class Recipe:
    """run: from a data folder to a run on rows of at most 24 tokens, which takes seconds. tokenizer: the kind that the data needs. prepare:
    from the data folder, makes beside it whatever else the run needs."""

    run: Callable[[Path], Run]
    tokenizer: str = "wordpiece"
    prepare: Callable[[Path], object] = lambda data: None
