"""ELMo-medium: LSTMs of 2,048 cells projected to 256, one highway; 28,027,728 parameters without the softmax.

    jaxenc pretrain --config elmo/medium --config.data.path=DATA --workdir RUN

Trained on the One Billion Word benchmark (allennlp.org/elmo). Data as for elmo/small. Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.elmo import published
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(published("medium"))
