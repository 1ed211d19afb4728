"""A small XLNet (4 layers, 512 wide) for one GPU and a corpus of 100 MB or so: rows of 128 tokens, 64 of them reused, a memory of 96.

    jaxenc tokenizer --input FILES --type unigram --vocab-size 16000 --out TOKENIZER
    jaxenc data --input FILES --tokenizer TOKENIZER --out DATA
    jaxenc pretrain --config xlnet/small --config.data.path=DATA --workdir RUN

Whole words are predicted. Four minutes on one H200; held-out loss 3.000 on 153 MB of English (docs/benchmarks.md), whose vocabulary was
trained and read by XLNet's own rule, without accents; --normalize nfkc --strip-accents comes close to it.
"""

import dataclasses

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.sizes import xlnet
from jaxenc.objectives.plm import PlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    model: XlnetConfig = dataclasses.replace(xlnet(4, 512), dropout=0.0, attention_dropout=0.0)
    run = Run(
        objective=PlmConfig(predictions=21, permutation=64, memory=96),
        model=model,
        data=DataConfig(rows="streams", length=128, reuse=64),
        train=TrainConfig(steps=8_000, batch=256),
        optim=OptimConfig(lr=1e-3, warmup=1000),
        checkpoint=CheckpointConfig(every=3_000),
        eval=EvalConfig(every=1_000),
        log=LogConfig(every=100),
    )
    return recipe(run)
