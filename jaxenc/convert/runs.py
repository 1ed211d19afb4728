"""The run of a model that comes from elsewhere, and what a run says of its model."""

import dataclasses

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
from jaxenc.tree import Tree


def objective_for(structure: Structure) -> ObjectiveConfig:
    """The objective that pretrains these heads, else one that holds them: `features` for a model that no heads sit on."""
    for one in OBJECTIVES.values():
        if one.trains and set(one.trains) == set(structure.heads):
            return one()
    if not isinstance(structure.model, EncoderConfig):
        return FeaturesConfig()
    return HeadsConfig(structure.heads, structure.labels, structure.pooler_activation)


def run_for(structure: Structure) -> Run:
    """A run of `objective_for`, with its rows, as long as the model takes. Everything else has its default."""
    objective = objective_for(structure)
    data = dataclasses.replace(objective.rows, length=structure.model.positions or objective.rows.length)
    return Run(objective, structure.model, data)


def run_of(found: Import) -> Run:
    """The run of what a family found in files. Raises UserError for fields of `optim` that do not exist."""
    optim = config.from_dict(OptimConfig, found.optim, "optim")
    return dataclasses.replace(run_for(found.structure), optim=optim)


def note(found: Import, run: Run) -> str:
    """The line for the user on the fields that the files do not state, with the values that `run` has for them, '' for none."""
    if not found.note:
        return ""
    fields = dict(config.flatten(config.to_dict(run)))
    return f"{found.note}: {', '.join(f'{name} {fields[name]}' for name in found.unstated)}; set your own to train on"


def structure_of(run: Run, params: Tree) -> Structure:
    """The network of a run and the built-in heads that `params` has."""
    heads, objective = tuple(name for name in BUILT_IN if name in params), run.objective
    if isinstance(objective, HeadsConfig):
        return Structure(run.model, heads, objective.labels, objective.pooler_activation)
    return Structure(run.model, heads)
