"""A DistilBERT at toy size, for tests and a first run on a CPU: 1 layer, 128 wide, rows of 32 tokens, distilled from bert/tiny.

    jaxenc pretrain --config bert/tiny --config.data.path=DATA --workdir TEACHER
    jaxenc pretrain --config distilbert/tiny --config.data.path=DATA --config.objective.teacher=TEACHER --workdir RUN

Without a teacher: --config.objective.kind=mlm --config.objective.rate=0.3 instead of the teacher. Not published: everything but the model
and the loss is as in bert/tiny.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    model = DistilbertConfig(
        vocab_size=4096,
        width=128,
        layers=1,
        heads=4,
        feed_forward=256,
        positions=64,
        activation="gelu_tanh",
        dropout=0.0,
        attention_dropout=0.0,
        init_scale=0.1,
    )
    run = Run(
        objective=DistillationConfig(rate=0.3),
        model=model,
        data=DataConfig(length=32),
        train=TrainConfig(steps=560, batch=256, precision="float32"),
        optim=OptimConfig(lr=4e-3, warmup=50, beta2=0.98),
        checkpoint=CheckpointConfig(every=35),
        eval=EvalConfig(every=140, batch=256),
        log=LogConfig(every=20),
    )
    return recipe(run)
