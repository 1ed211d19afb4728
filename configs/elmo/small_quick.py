"""ELMo-small for a corpus of 100 MB or so and one GPU: 50,000 words or fewer to predict, no dropout, Adam in the place of Adagrad.

    jaxenc tokenizer --input FILES --type characters --vocab-size 50000 --out TOKENIZER
    jaxenc data --input FILES --tokenizer TOKENIZER --out DATA
    jaxenc pretrain --config elmo/small_quick --config.data.path=DATA --workdir RUN

Adagrad's effective rate falls with every gradient; with its constant 0.2, training takes the published ten epochs of 0.8 billion words.
Adam with a linear decay is what the other quick recipes use. Five minutes on one H200; held-out perplexity 57.6 forward and 58.1 backward
on 153 MB of English (docs/benchmarks.md).
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.elmo import published
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.settings import EvalConfig, LogConfig


def get_config() -> ConfigDict:
    run = published("small")
    run = dataclasses.replace(
        run,
        objective=BilmConfig(scale=1.0),
        model=dataclasses.replace(run.model, vocab_size=50_000, dropout=0.0),
        train=dataclasses.replace(run.train, steps=12_000),
        optim=OptimConfig(lr=2e-3, warmup=500, weight_decay=0.0, decay_exclude=()),
        checkpoint=CheckpointConfig(every=3_000),
        eval=EvalConfig(every=1_500),
        log=LogConfig(every=100),
    )
    return recipe(run)
