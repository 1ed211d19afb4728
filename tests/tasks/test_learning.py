"""Each kind of task is learned from its own rows: what a model is trained on is what its answers are read from."""

import numpy as np
import pytest

from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.regress import Regress
from tests.selection import thinned
from tests.tasks.learning import learned

SCORES = [round(5 * (number * 7 % 16) / 15, 3) for number in range(16)]
# {kind: (task, what its record has beside the text or the pair)}
TASKS = {
    "classify": (Classify(), lambda number: {"label": "abc"[number % 3]}),
    "multilabel": (Multilabel(), lambda number: {"label": [name for name, step in (("a", 2), ("b", 3)) if number % step == 0]}),
    "regress": (Regress(label="score", bounds=(0.0, 5.0)), lambda number: {"score": SCORES[number]}),
    "scaled": (Regress(label="score", bounds=(0.0, 5.0), scaled=True, metric="spearman"), lambda number: {"score": SCORES[number]}),
    "choice": (
        Choice(),
        lambda number: {"choices": list(np.roll(("quick", "dog", "lazy")[: 2 + number % 2], number)), "label": number % (2 + number % 2)},
    ),
}


@pytest.mark.parametrize("kind, batch", thinned([*((kind, 16) for kind in TASKS), ("regress", 1)], "choice", ("regress", 16)))
def test_sixteen_examples_are_learned(tmp_path, kind, batch):
    """B88: to a metric of 0.95 or more."""
    assert learned(*TASKS[kind], tmp_path, batch) >= 0.95
