"""ELECTRA-base (Clark et al. 2020): 12 layers, 768 wide, a generator 256 wide; 119,386,427 parameters in pretraining, 109,483,009 to keep.

    jaxenc pretrain --config electra/base --config.data.path=DATA --workdir RUN

Published on 16 TPUs in four days; GLUE dev average 85.1 (paper, table 1). The released checkpoint (Base++) has 4,000,000 steps on XLNet's
data. Not yet run here to the end.
"""

from ml_collections import ConfigDict

from jaxenc.configs import recipe
from jaxenc.configs.electra import published
from jaxenc.models.sizes import ELECTRA, electra


def get_config() -> ConfigDict:
    return recipe(published(electra(*ELECTRA["base"]), steps=766_000, batch=256, length=512, lr=2e-4))
