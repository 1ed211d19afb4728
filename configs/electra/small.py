"""ELECTRA-small (Clark et al. 2020): 12 layers, 256 wide, a generator 64 wide; 14,196,219 parameters, 13,549,057 in the discriminator.

    jaxenc pretrain --config electra/small --config.data.path=DATA --workdir RUN

The released checkpoint (Small++) is another: a generator as wide as the discriminator, rows of 512 and 4,000,000 steps
(google-research/electra README.md; paper). What this recipe reached where it was published is in electra/small_owt. Not yet run here to
the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.electra import published_small
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(published_small())
