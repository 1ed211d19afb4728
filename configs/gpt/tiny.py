"""A GPT for one CPU: 2 layers, 128 wide, rows of 32 tokens.

    jaxenc pretrain --config gpt/tiny --config.data.path=DATA --workdir RUN

TIMES
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    run = Run(
        objective=CausalConfig(),
        model=GptConfig(
            vocab_size=4096,
            width=128,
            layers=2,
            heads=4,
            feed_forward=512,
            positions=64,
            dropout=0.0,
            table_dropout=0.0,
            attention_dropout=0.0,
            init_scale=0.1,
        ),
        data=DataConfig(length=32),
        train=TrainConfig(steps=300, batch=256, precision="float32"),
        optim=OptimConfig(lr=2e-3, warmup=50, beta2=0.98),
        checkpoint=CheckpointConfig(every=150),
        eval=EvalConfig(every=150, batch=256),
        log=LogConfig(every=20),
    )
    return recipe(run)
