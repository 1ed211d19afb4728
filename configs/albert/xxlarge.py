"""ALBERT-xxlarge (Lan et al. 2019, table 1): 12 layers, 4,096 wide, 64 heads, 222,595,584 parameters with the pooler, without heads.

    jaxenc pretrain --config albert/xxlarge --config.data.path=DATA --workdir RUN --config.train.microbatches=64

Published on 64 to 512 Cloud TPU v3 chips; after fine-tuning 90.8 on MNLI, 96.9 on SST-2, 94.8 F1 on SQuAD 1.1, dev sets, version 1,
which trained 1.5 M steps (google-research/albert README.md). Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.albert import published
from ml_collections import ConfigDict

from jaxenc.families.albert.sizes import ALBERT, albert


def get_config() -> ConfigDict:
    return recipe(published(albert(*ALBERT["xxlarge"])))
