"""BERT-large, uncased (Devlin et al. 2018): 24 layers, 1024 wide, 336,226,108 parameters with both heads.

    jaxenc pretrain --config bert/large --config.data.path=DATA --workdir RUN

Published on 16 Cloud TPUs (64 chips) in four days; GLUE test average 82.1 (paper, table 1). Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.bert import published
from ml_collections import ConfigDict

from jaxenc.families.bert.sizes import BERT, bert


def get_config() -> ConfigDict:
    return recipe(published(bert(*BERT["large"])))
