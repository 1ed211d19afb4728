"""ALBERT at toy size, for tests and a first run on a CPU: 2 uses of one layer, 128 wide, tables of 32, rows of 32 tokens, float32.

    jaxenc pretrain --config albert/tiny --config.data.path=DATA --workdir RUN

Not published: hyper-parameters as in `bert/tiny`.
"""

import dataclasses

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.objectives.pair import SentenceOrderConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    objective = SentenceOrderConfig(unit="ngrams", rate=0.3)
    run = Run(
        objective=objective,
        model=AlbertConfig(vocab_size=4096, width=128, layers=2, heads=4, feed_forward=256, embedding=32, positions=64, init_scale=0.1),
        data=dataclasses.replace(objective.rows, length=32),
        train=TrainConfig(steps=560, batch=256, precision="float32"),
        optim=OptimConfig(lr=4e-3, warmup=50, beta2=0.98),
        checkpoint=CheckpointConfig(every=35),
        eval=EvalConfig(every=140, batch=256),
        log=LogConfig(every=20),
    )
    return recipe(run)
