"""ELMo (Peters et al. 2018): LSTMs of 4,096 cells projected to 512, two highways; 93,600,848 parameters, the softmax not counted.

    jaxenc pretrain --config elmo/original --config.data.path=DATA --workdir RUN

Trained on the One Billion Word benchmark for two weeks on three GTX 1080; perplexity 39.7 after ten epochs, the mean of both directions
(paper, section 3.4; allenai/bilm-tf README.md). Data as for elmo/small. Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.elmo import published
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(published("original"))
