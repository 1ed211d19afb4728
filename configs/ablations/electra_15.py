"""ELECTRA 15% (Clark et al. 2020, section 3.4): the discriminator's loss counts the chosen tokens alone.

    jaxenc pretrain --config ablations/electra_15 --config.data.path=DATA --workdir RUN

ELECTRA-small otherwise: compared with electra/small it shows what a loss on every token is worth. A position that was drawn twice counts
once. The paper's average on GLUE's dev sets, of the base size (table 5): 82.4 with it, 85.0 without. Not yet run here.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.electra import published_small
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    run = published_small()
    return recipe(dataclasses.replace(run, objective=dataclasses.replace(run.objective, detects="chosen")))
