"""The reference curves: held-out numbers of runs that were measured, one JSON file each in curves/."""

import dataclasses
import importlib.resources
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxenc.reports.normal.evidence import LOSSES, Evidence, position

BEYOND = 0.4  # a position above which a network uses context, and no longer the frequencies of words alone


@dataclasses.dataclass(frozen=True)
class Reference:
    """A run that was measured.

    recipe, changed: what was trained, and the fields that differ from the recipe today. objective: its kind. model: kind, width and layers.
    corpus, tokenizer, hardware, versions, date, command: in words, for a reader. source: where its numbers are from. tokens_per_step:
    places of a step's rows; steps, warmup, lr: of its schedule. counts: the count baselines of its text, in nats a token. step: of each
    evaluation. curves: {name of a held-out number: its value at each of them}.
    """

    recipe: str
    objective: str
    model: Mapping[str, Any]
    corpus: str
    tokenizer: Mapping[str, Any]
    hardware: str
    versions: str
    date: str
    command: str
    tokens_per_step: int
    steps: int
    warmup: int
    lr: float
    counts: Mapping[str, float]
    step: Sequence[int]
    curves: Mapping[str, Sequence[float]]
    changed: str = ""
    source: str = ""

    @property
    def loss(self) -> np.ndarray:
        """The token loss at each evaluation, float64."""
        return np.mean([self.curves[name] for name in LOSSES[self.objective][0]], axis=0)

    @property
    def tokens(self) -> np.ndarray:
        """Tokens read at each evaluation, float64."""
        return np.array(self.step, np.float64) * self.tokens_per_step

    @property
    def positions(self) -> np.ndarray:
        """`evidence.position` at each evaluation."""
        return np.array([position(float(loss), self.counts, self.objective) for loss in self.loss])

    def at(self, tokens: float) -> float:
        """The position after so many tokens, on straight lines over the logarithm of the tokens; NaN before the first evaluation."""
        if tokens < self.tokens[0]:
            return math.nan
        return float(np.interp(math.log(tokens), np.log(self.tokens), self.positions))

    @property
    def leaves(self) -> float:
        """Tokens after which the position was BEYOND: where the plateau at the frequencies of words ended. inf if it never was."""
        beyond = np.flatnonzero(self.positions > BEYOND)
        if not len(beyond):
            return math.inf
        first = beyond[0]
        if not first:
            return float(self.tokens[0])
        before, after = self.positions[first - 1 : first + 1]
        share = (BEYOND - before) / (after - before)
        return float(np.exp((1 - share) * np.log(self.tokens[first - 1]) + share * np.log(self.tokens[first])))


def references() -> tuple[Reference, ...]:
    """All that are shipped, in the order of their file names."""
    folder = importlib.resources.files("jaxenc.reports.normal") / "curves"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return tuple(Reference(**json.loads(file.read_text())) for file in files)


def nearest(run: Evidence, known: Sequence[Reference]) -> Reference | None:
    """The reference that a run is compared with: one of its objective, of its kind of model if there is one, and of those the nearest in
    size. None for an objective without a reference."""
    alike = [one for one in known if one.objective == run.kind]
    if not alike:
        return None
    return min(alike, key=lambda one: (one.model["kind"] != run.model.get("kind"), abs(math.log(size(run.model) / size(one.model)))))


def size(model: Mapping[str, Any]) -> float:
    """A measure of a network's weights without its tables: layers times width squared. 1 for a model that does not say."""
    width, layers = (model.get(name, 1) for name in ("width", "layers"))
    whole = all(type(number) is int and number > 0 for number in (width, layers))
    return float(layers * width**2) if whole else 1.0
