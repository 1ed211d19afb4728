"""RoBERTa-large (Liu et al. 2019): 24 layers, 1024 wide, 355,412,057 parameters with the masked-token head.

    jaxenc pretrain --config roberta/large --config.data.path=DATA --workdir RUN

Published on 160 GB of text with 1,024 V100 GPUs, about a day for the first 100,000 steps (paper, section 5); after fine-tuning 90.2 on
MNLI, 94.7 on QNLI, 96.4 on SST-2, dev sets (fairseq, examples/roberta/README.md). Not yet run here to the end. A step is 256 parts of 32
rows: 50.5 GB on an H100 of 80 GB (measured with two parts). With N of them divide `train.microbatches` by N.
"""

from jaxenc.configs import recipe
from jaxenc.configs.roberta import published
from ml_collections import ConfigDict

from jaxenc.families.bert.sizes import ROBERTA, roberta


def get_config() -> ConfigDict:
    return recipe(published(roberta(*ROBERTA["large"]), lr=4e-4, warmup=30_000, microbatches=256))
