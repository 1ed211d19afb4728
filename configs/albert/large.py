"""ALBERT-large (Lan et al. 2019, table 1): 24 layers, 1,024 wide, 16 heads, 17,683,968 parameters with the pooler, without heads.

    jaxenc pretrain --config albert/large --config.data.path=DATA --workdir RUN --config.train.microbatches=64

Published on 64 to 512 Cloud TPU v3 chips; after fine-tuning 83.5 on MNLI, 91.7 on SST-2, 90.6 F1 on SQuAD 1.1, dev sets, version 1
(google-research/albert README.md). Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.albert import published
from ml_collections import ConfigDict

from jaxenc.families.albert.sizes import ALBERT, albert


def get_config() -> ConfigDict:
    return recipe(published(albert(*ALBERT["large"])))
