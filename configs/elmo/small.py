"""ELMo-small: LSTMs of 1,024 cells projected to 128, one highway; 13,593,296 parameters without the softmax.

    jaxenc pretrain --config elmo/small --config.data.path=DATA --workdir RUN

Trained on the One Billion Word benchmark (allennlp.org/elmo). Data: a tokenizer of `--type characters --pretokenized`, or the folder of
bilm-tf's vocab.txt. Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.elmo import published
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(published("small"))
