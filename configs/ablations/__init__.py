"""Experiments that change one thing of a published recipe: what the recipes of this folder share."""

import dataclasses

from jaxenc.configs.electra import published_small

from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.electra.sizes import ELECTRA, electra
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run


def replaced_mlm(predicts: str) -> Run:
    """ELECTRA-small with masked language modelling on the generator's rows in the place of the discriminator's loss, masks as there."""
    run = published_small()
    given: RtdConfig = run.objective
    masks = {"rate": given.rate, "mask_share": given.mask_share, "with_replacement": given.with_replacement}
    return dataclasses.replace(run, objective=ReplacedMlmConfig(**masks, predicts=predicts))


def two_stage(sharing: str) -> Run:
    """Half of ELECTRA-small's steps with a generator of the discriminator's size, which can lend its weights."""
    run = published_small()
    layers, width, embedding, _ = ELECTRA["small"]
    model: ElectraConfig = dataclasses.replace(electra(layers, width, embedding, width), sharing=sharing)
    return dataclasses.replace(run, model=model, train=dataclasses.replace(run.train, steps=run.train.steps // 2))
