"""A small GPT (4 layers, 512 wide) for one GPU and a corpus of 100 MB or so: rows of 128 tokens.

    jaxenc tokenizer --input FILES --type word_bpe --vocab-size 16000 --out TOKENIZER
    jaxenc data --input FILES --tokenizer TOKENIZER --out DATA
    jaxenc pretrain --config gpt/small --config.data.path=DATA --workdir RUN
    jaxenc complete --model RUN --text "The old house"

As bert/small in everything but the model and the loss, so that the two can be compared. Minutes on one H200; docs/benchmarks.md has
the numbers it reaches in 6,000 steps.
"""

import dataclasses

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.gpt.sizes import gpt
from jaxenc.objectives.causal import CausalConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    model: GptConfig = dataclasses.replace(gpt(4, 512), dropout=0.0, table_dropout=0.0, attention_dropout=0.0)
    run = Run(
        objective=CausalConfig(),
        model=model,
        train=TrainConfig(steps=12_000, batch=256),
        optim=OptimConfig(lr=1e-3, warmup=1000),
        checkpoint=CheckpointConfig(every=3_000),
        eval=EvalConfig(every=1_000),
        log=LogConfig(every=100),
    )
    return recipe(run)
