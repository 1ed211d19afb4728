"""ALBERT-base (Lan et al. 2019, table 1): 12 layers, 768 wide, 12 heads, 11,683,584 parameters with the pooler, without heads.

    jaxenc pretrain --config albert/base --config.data.path=DATA --workdir RUN --config.train.microbatches=64

Published on 64 to 512 Cloud TPU v3 chips; after fine-tuning 81.6 on MNLI, 90.3 on SST-2, 89.3 F1 on SQuAD 1.1, dev sets, version 1
(google-research/albert README.md). Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.albert import published
from ml_collections import ConfigDict

from jaxenc.families.albert.sizes import ALBERT, albert


def get_config() -> ConfigDict:
    return recipe(published(albert(*ALBERT["base"])))
