"""A GPT for one CPU: 2 layers, 128 wide, rows of 32 tokens.

    jaxenc pretrain --config gpt/tiny --config.data.path=DATA --workdir RUN
    jaxenc complete --model RUN --text "The old house"

Width, rows and steps are those of bert/tiny, and the weights start as wide; the inner layers are four times the width, as transformers'
GPT has them. On 8 MB of English manuals the training loss fell from 9 to 6.0 nats a token in the first 120 steps. Not yet run here to the
end, nor timed.
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
        train=TrainConfig(steps=560, batch=256, precision="float32"),
        optim=OptimConfig(lr=2e-3, warmup=50, beta2=0.98),
        checkpoint=CheckpointConfig(every=35),
        eval=EvalConfig(every=140, batch=256),
        log=LogConfig(every=20),
    )
    return recipe(run)
