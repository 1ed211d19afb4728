"""An ELMo for one CPU: LSTMs of 128 cells projected to 64, rows of 20 words, 2,048 words to predict.

    jaxenc pretrain --config elmo/tiny --config.data.path=DATA --workdir RUN

RESULT
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.config import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.models.elmo import ElmoConfig
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.optim.config import OptimConfig
from jaxenc.run import Run
from jaxenc.train.config import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    run = Run(
        objective=BilmConfig(negatives=512, scale=1.0),
        model=ElmoConfig(
            vocab_size=2048,
            width=64,
            cells=128,
            character_width=8,
            filter_widths=(1, 2, 3),
            filters=(8, 8, 16),
            highways=1,
            dropout=0.0,
        ),
        data=DataConfig(rows="sentences", length=20),
        train=TrainConfig(steps=300, batch=64, precision="float32"),
        optim=OptimConfig(lr=5e-3, warmup=20, beta2=0.98, weight_decay=0.0, decay_exclude=()),
        checkpoint=CheckpointConfig(every=150),
        eval=EvalConfig(every=150, batch=64),
        log=LogConfig(every=20),
    )
    return recipe(run)
