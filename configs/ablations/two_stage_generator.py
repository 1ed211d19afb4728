"""ELECTRA in two stages, the first (Clark et al. 2020, section 3.2): a generator alone, as a masked language model.

    jaxenc pretrain --config ablations/two_stage_generator --config.data.path=DATA --workdir RUN

The second is ablations/two_stage_discriminator. ELECTRA-small with a generator of the discriminator's size. The paper trains both stages
for the same number of steps; here each has half the steps of electra/small. Masks as published but drawn without replacement. The paper
finds two stages worse than joint training after fine-tuning. Not yet run here.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.ablations import two_stage
from ml_collections import ConfigDict

from jaxenc.objectives.mlm import MlmConfig


def get_config() -> ConfigDict:
    run = two_stage("embeddings")
    given = run.objective
    objective = MlmConfig(rate=given.rate, mask_share=given.mask_share, random_share=given.random_share)
    return recipe(dataclasses.replace(run, objective=objective))
