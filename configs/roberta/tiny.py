"""A RoBERTa for one CPU: 2 layers, 64 wide, rows of 32 tokens; for tests and for trying a corpus and a tokenizer out.

    jaxenc pretrain --config roberta/tiny --config.data.path=DATA --workdir RUN

Masking, rows and optimizer by the published rules. Half a minute on 2 cores, which is enough to see the loss fall and no more.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.roberta import fairseq_adam, fairseq_masking
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.bert.sizes import roberta
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    small = dataclasses.replace(
        roberta(2, 64),
        vocab_size=2048,
        heads=4,
        feed_forward=128,
        positions=64,
        dropout=0.0,
        attention_dropout=0.0,
        init_scale=0.1,
    )
    run = Run(
        objective=fairseq_masking(),
        model=small,
        data=DataConfig(rows="full_sentences", length=32),
        train=TrainConfig(steps=300, batch=64, precision="float32"),
        optim=fairseq_adam(lr=4e-3, warmup=30),
        checkpoint=CheckpointConfig(every=50),
        eval=EvalConfig(every=150, batch=64),
        log=LogConfig(every=20),
    )
    return recipe(run)
