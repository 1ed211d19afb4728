"""XLNet-large, cased (Yang et al. 2019): 24 layers, 1,024 wide, 360,300,800 parameters with the bias of the vocabulary.

    jaxenc pretrain --config xlnet/large --config.data.path=DATA --workdir RUN

Published on 512 TPU v3 chips in 5.5 days, with batches of 8,192; after fine-tuning 89.8 on MNLI, 93.9 on QNLI, 95.6 on SST-2, dev sets
(zihangdai/xlnet, README.md). Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.xlnet import published
from ml_collections import ConfigDict

from jaxenc.families.xlnet.sizes import XLNET, xlnet


def get_config() -> ConfigDict:
    return recipe(published(xlnet(*XLNET["large"]), batch=8192, microbatches=512))
