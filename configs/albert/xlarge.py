"""ALBERT-xlarge (Lan et al. 2019, table 1): 24 layers, 2,048 wide, 16 heads, 58,724,864 parameters with the pooler, without heads.

    jaxenc pretrain --config albert/xlarge --config.data.path=DATA --workdir RUN --config.train.microbatches=64

Published on 64 to 512 Cloud TPU v3 chips; after fine-tuning 86.4 on MNLI, 92.4 on SST-2, 92.5 F1 on SQuAD 1.1, dev sets, version 1
(google-research/albert README.md). Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.albert import published
from ml_collections import ConfigDict

from jaxenc.families.albert.sizes import ALBERT, albert


def get_config() -> ConfigDict:
    return recipe(published(albert(*ALBERT["xlarge"])))
