"""An ELMo for one CPU: LSTMs of 128 cells projected to 64, rows of 20 words, 2,048 words to predict.

    jaxenc pretrain --config elmo/tiny --config.data.path=DATA --workdir RUN

Three minutes of one core's time. On 6 MB of English (1.2 M words, 18 % of them unknown to the 2,048) held-out words had 4.69 nats forward
and 4.71 backward: below the 5.18 of the unigram table, and above the 4.40 of the table of neighbours, which takes longer to beat.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


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
        checkpoint=CheckpointConfig(every=25),
        eval=EvalConfig(every=150, batch=64),
        log=LogConfig(every=20),
    )
    return recipe(run)
