"""XLNet-base, cased (Yang et al. 2019): 12 layers, 768 wide, 116,750,336 parameters with the bias of the vocabulary.

    jaxenc pretrain --config xlnet/base --config.data.path=DATA --workdir RUN

After fine-tuning 86.8 on MNLI, 91.7 on QNLI, 94.7 on SST-2, dev sets (zihangdai/xlnet, README.md). How long the base model was trained is
not published: the steps and rates are the large model's, the batch is the README's. Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.xlnet import published
from ml_collections import ConfigDict

from jaxenc.families.xlnet.sizes import XLNET, xlnet


def get_config() -> ConfigDict:
    return recipe(published(xlnet(*XLNET["base"]), batch=2048, microbatches=64))
