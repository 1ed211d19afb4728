"""ALBERT-small (6 uses of one layer, 512 wide, tables of 128) for one GPU and a corpus of 100 MB or so: n-grams and sentence order.

    jaxenc tokenizer --input FILES --type unigram --vocab-size 16000 --out TOKENIZER
    jaxenc data --input FILES --tokenizer TOKENIZER --out DATA
    jaxenc pretrain --config albert/small --config.data.path=DATA --workdir RUN

Not published. Rows of 128 tokens, batch and rate as in `bert/small`. Minutes on one H200; docs/benchmarks.md has the numbers
it reaches in 6,000 steps.
"""

import dataclasses

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.families.albert.sizes import albert
from jaxenc.objectives.pair import SentenceOrderConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    objective = SentenceOrderConfig(unit="ngrams")
    run = Run(
        objective=objective,
        model=albert(6, 512, 8),
        data=dataclasses.replace(objective.rows, length=128),
        train=TrainConfig(steps=12_000, batch=256),
        optim=OptimConfig(lr=1e-3, warmup=1000),
        checkpoint=CheckpointConfig(every=3_000),
        eval=EvalConfig(every=1_000),
        log=LogConfig(every=100),
    )
    return recipe(run)
