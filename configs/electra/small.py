"""ELECTRA-small (Clark et al. 2020): 12 layers, 256 wide, a generator 64 wide; 14,196,219 parameters in pretraining, 13,549,057 to keep.

    jaxenc pretrain --config electra/small --config.data.path=DATA --workdir RUN

Published on one V100 in four days; GLUE dev average 79.9 (paper, table 1). The released checkpoint (Small++) is another: a generator as
wide as the discriminator, rows of 512 and 4,000,000 steps (google-research/electra README.md). Not yet run here to the end.
"""

from ml_collections import ConfigDict

from jaxenc.configs import recipe
from jaxenc.configs.electra import published
from jaxenc.models.sizes import ELECTRA, electra


def get_config() -> ConfigDict:
    return recipe(published(electra(*ELECTRA["small"]), steps=1_000_000, batch=128, length=128, lr=5e-4))
