"""ELECTRA-base (Clark et al. 2020): 12 layers, 768 wide, a generator 256 wide; 119,386,427 parameters, 109,483,009 in the discriminator.

    jaxenc pretrain --config electra/base --config.data.path=DATA --workdir RUN

766,000 steps are those of google-research/electra:flops_computation.py. The released checkpoint (Base++) has 4,000,000 (paper); fine-tuned,
its medians on GLUE's dev sets are 88.8 on MNLI, 93.2 on QNLI, 95.1 on SST-2, 67.7 on CoLA (google-research/electra README.md). Not yet run
here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.electra import published
from ml_collections import ConfigDict

from jaxenc.families.electra.sizes import ELECTRA, electra


def get_config() -> ConfigDict:
    return recipe(published(electra(*ELECTRA["base"]), steps=766_000, batch=256, length=512, lr=2e-4))
