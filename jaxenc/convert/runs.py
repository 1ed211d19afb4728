"""From the structure of a converted model to a Run, and from a Run to the structure of its model."""

import dataclasses
from collections.abc import Collection

from jaxenc import config
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.foreign import Import, Structure
from jaxenc.heads import BUILT_IN
from jaxenc.objectives import OBJECTIVES
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run

# Texts in a row of a converted model that chooses between them. No file says how many, and no parameter depends on it.
LEAST = 2


def objective_for(structure: Structure) -> ObjectiveConfig:
    """The objective that pretrains exactly these heads; otherwise `heads` with them, or `features` for a model without an encoder."""
    for one in OBJECTIVES.values():
        if one.trains and set(one.trains) == set(structure.heads):
            return one()
    if not isinstance(structure.model, EncoderConfig):
        return FeaturesConfig()
    choices = LEAST if any(BUILT_IN[name].chooses for name in structure.heads) else 0
    return HeadsConfig(structure.heads, structure.labels, structure.pooler_activation, choices)


def run_for(structure: Structure) -> Run:
    """A run with the objective of `objective_for` and its rows, as long as the model supports; all other settings have their defaults."""
    objective = objective_for(structure)
    data = dataclasses.replace(objective.rows, length=structure.model.positions or objective.rows.length)
    return Run(objective, structure.model, data)


def run_of(found: Import) -> Run:
    """The run of an `Import`. Raises UserError for fields of `optim` that do not exist."""
    optim = config.from_dict(OptimConfig, found.optim, "optim")
    return dataclasses.replace(run_for(found.structure), optim=optim)


def note(found: Import, run: Run) -> str:
    """The message to the user about the fields that the files do not state, with their values in `run`; '' for none."""
    if isinstance(run.objective, HeadsConfig) and run.objective.choices:
        return f"does not say how many choices a row has: objective.choices {run.objective.choices}; set your own to train on"
    if not found.note:
        return ""
    fields = dict(config.flatten(config.to_dict(run)))
    return f"{found.note}: {', '.join(f'{name} {fields[name]}' for name in found.unstated)}; set your own to train on"


def structure_of(run: Run, names: Collection[str]) -> Structure:
    """The model of a run with the built-in heads among `names`."""
    heads, objective = tuple(name for name in BUILT_IN if name in names), run.objective
    if isinstance(objective, HeadsConfig):
        return Structure(run.model, heads, objective.labels, objective.pooler_activation)
    return Structure(run.model, heads)
