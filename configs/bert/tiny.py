"""A BERT for one CPU: 2 layers, 128 wide, rows of 32 tokens, masked tokens only; what `jaxenc demo` trains.

    jaxenc pretrain --config bert/tiny --config.data.path=DATA --workdir RUN

Takes three to four minutes on 2 cores. Short rows, large batches, a masking rate of 0.3 and wider initial weights than BERT's 0.02 (0.1
suits a width of 128) get a model this small past the point where it only knows word frequencies: at 0.02, with rows of 64 and batches of
32, it was still there after 1.8 M tokens. docs/quickstart.md has the numbers it reaches.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    run = Run(
        objective=MlmConfig(rate=0.3),
        model=BertConfig(
            vocab_size=4096,
            width=128,
            layers=2,
            heads=4,
            feed_forward=256,
            positions=64,
            dropout=0.0,
            attention_dropout=0.0,
            init_scale=0.1,
        ),
        data=DataConfig(length=32),
        train=TrainConfig(steps=560, batch=256, precision="float32"),
        optim=OptimConfig(lr=4e-3, warmup=50, beta2=0.98),
        checkpoint=CheckpointConfig(every=35),
        eval=EvalConfig(every=140, batch=256),
        log=LogConfig(every=20),
    )
    return recipe(run)
