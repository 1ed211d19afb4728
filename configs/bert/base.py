"""BERT-base, uncased (Devlin et al. 2018): 12 layers, 768 wide, 110,106,428 parameters with both heads.

    jaxenc pretrain --config bert/base --config.data.path=DATA --workdir RUN

Published on 4 Cloud TPUs (16 chips) in four days; GLUE test average 79.6 (paper, table 1). Not yet run here to the end. On a GPU its
attention, with dropout 0.1 as published, is one fused kernel (`train.attention=pallas`, which `auto` chooses).
"""

from jaxenc.configs import recipe
from jaxenc.configs.bert import published
from ml_collections import ConfigDict

from jaxenc.families.bert.sizes import BERT, bert


def get_config() -> ConfigDict:
    return recipe(published(bert(*BERT["base"])))
