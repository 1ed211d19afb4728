"""RoBERTa-base (Liu et al. 2019): 12 layers, 768 wide, 124,697,433 parameters with the masked-token head.

    jaxenc pretrain --config roberta/base --config.data.path=DATA --workdir RUN

Published on 160 GB of text; after fine-tuning 87.6 on MNLI, 92.8 on QNLI, 94.8 on SST-2, dev sets (fairseq, examples/roberta/README.md).
Not yet run here to the end. A step is 64 parts of 128 rows: 60.8 GB on an H100 of 80 GB, 37.0 GB with `--config.model.attention_dropout=0`,
which is also 1.56 times as fast (measured with two parts). With N of them divide `train.microbatches` by N.
"""

from jaxenc.configs import recipe
from jaxenc.configs.roberta import published
from ml_collections import ConfigDict

from jaxenc.families.bert.sizes import ROBERTA, roberta


def get_config() -> ConfigDict:
    return recipe(published(roberta(*ROBERTA["base"]), lr=6e-4, warmup=24_000, microbatches=64))
