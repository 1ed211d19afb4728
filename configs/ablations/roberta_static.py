"""Static masks (Liu et al. 2019, section 4.1): each row is masked in ten ways, which come back every ten epochs.

    jaxenc pretrain --config ablations/roberta_static --config.data.path=DATA --workdir RUN

For the comparison, new masks at every step, run the same command with `--config.train.dupe_factor=0`. A RoBERTa of 4 layers, 512 wide, for
a corpus of 100 MB or so. The paper's runs have 40 epochs, so each mask is seen four times; dynamic masks were as good as static ones or
slightly better. In ten epochs or fewer no mask repeats, and the two runs are equivalent. Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.roberta import fairseq_adam, fairseq_masking
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data.sources import DataConfig
from jaxenc.families.bert.sizes import roberta
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    run = Run(
        objective=fairseq_masking(),
        model=roberta(4, 512),
        data=DataConfig(rows="full_sentences", length=128),
        train=TrainConfig(steps=30_000, batch=256, dupe_factor=10),
        optim=fairseq_adam(lr=1e-3, warmup=2_000),
        checkpoint=CheckpointConfig(every=3_000),
        eval=EvalConfig(every=1_000),
        log=LogConfig(every=100),
    )
    return recipe(run)
