"""ELECTRA-large (Clark et al. 2020): 24 layers, 1024 wide, a generator 256 wide; 354,655,291 parameters,
335,142,913 in the discriminator.

    jaxenc pretrain --config electra/large --config.data.path=DATA --workdir RUN

A quarter of the tokens is masked. This is the paper's ELECTRA-400K; `--config.train.steps=1_750_000` is ELECTRA-1.75M. Not yet run here to
the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.electra import published
from ml_collections import ConfigDict

from jaxenc.families.electra.sizes import ELECTRA, electra


def get_config() -> ConfigDict:
    return recipe(published(electra(*ELECTRA["large"]), steps=400_000, batch=2048, length=512, lr=2e-4, rate=0.25))
