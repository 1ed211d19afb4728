"""BERT-small (4 layers, 512 wide) for one GPU and a corpus of 100 MB or so: masked tokens only, rows of 128 tokens.

    jaxenc tokenizer --input FILES --vocab-size 16000 --lowercase --strip-accents --out TOKENIZER
    jaxenc data --input FILES --tokenizer TOKENIZER --out DATA
    jaxenc pretrain --config bert/small --config.data.path=DATA --workdir RUN

Minutes on one H200; held-out loss 2.548 nats on 155 MB of English read in lower case, where a table of counts with both neighbours has 4.89
(docs/benchmarks.md). For text in another language leave out --lowercase and --strip-accents.
"""

import dataclasses

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.bert.sizes import bert
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig


def get_config() -> ConfigDict:
    model: BertConfig = dataclasses.replace(bert(4, 512), dropout=0.0, attention_dropout=0.0)
    run = Run(
        objective=MlmConfig(),
        model=model,
        train=TrainConfig(steps=12_000, batch=256),
        optim=OptimConfig(lr=1e-3, warmup=1000),
        checkpoint=CheckpointConfig(every=3_000),
        eval=EvalConfig(every=1_000),
        log=LogConfig(every=100),
    )
    return recipe(run)
