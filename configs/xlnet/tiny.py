"""An XLNet for one CPU: 2 layers, 64 wide, rows of 32 tokens, 16 of them reused, a memory of 24; for trying a corpus and a tokenizer out.

    jaxenc pretrain --config xlnet/tiny --config.data.path=DATA --workdir RUN

The published rule of what is predicted, and the published optimizer.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.xlnet import published
from ml_collections import ConfigDict

from jaxenc.checkpoint.config import CheckpointConfig
from jaxenc.models.xlnet import XlnetConfig
from jaxenc.train.config import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    model = XlnetConfig(vocab_size=2048, width=64, layers=2, heads=4, feed_forward=128, dropout=0.0, attention_dropout=0.0, init_scale=0.1)
    run = published(model, batch=64, microbatches=1)
    run = dataclasses.replace(
        run,
        objective=dataclasses.replace(run.objective, predictions=6, permutation=16, memory=24),
        data=dataclasses.replace(run.data, length=32, reuse=16),
        train=TrainConfig(steps=300, batch=64, precision="float32"),
        optim=dataclasses.replace(run.optim, lr=1e-3, warmup=30),
        checkpoint=CheckpointConfig(every=150),
        eval=EvalConfig(every=150, batch=64),
        log=LogConfig(every=20),
    )
    return recipe(run)
