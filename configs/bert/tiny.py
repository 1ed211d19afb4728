"""A BERT for one CPU: 2 layers, 128 wide, rows of 64 tokens, masked tokens only; what `jaxenc demo` trains.

    jaxenc pretrain --config bert/tiny --config.data.path DATA --workdir RUN

Takes about three minutes on 2 cores. The README has the numbers it reaches.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.config import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.config import OptimConfig
from jaxenc.run import Run
from jaxenc.train.config import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    run = Run(
        objective=MlmConfig(),
        model=BertConfig(vocab_size=4096, width=128, layers=2, heads=2, feed_forward=512, positions=64, dropout=0.0, attention_dropout=0.0),
        data=DataConfig(length=64),
        train=TrainConfig(steps=1200, batch=32, precision="float32"),
        optim=OptimConfig(lr=2e-3, warmup=100),
        checkpoint=CheckpointConfig(every=300),
        eval=EvalConfig(every=300, batch=64),
        log=LogConfig(every=25),
    )
    return recipe(run)
