"""An ELECTRA for one CPU: 2 layers, 64 wide, a generator 32 wide, rows of 32 tokens; for tests and for trying a corpus and a tokenizer out.

    jaxenc pretrain --config electra/tiny --config.data.path=DATA --workdir RUN

Masking, rows and optimizer by the published rules. 45 s on 2 cores (Python 3.11.7, jax 0.10.2, 28 November 2026), which is enough to see
both losses fall and no more: the discriminator still calls nearly every token an original one (area under the ROC curve 0.605). At a rate
of 4e-3, which roberta/tiny has, neither network got past the frequencies of words.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.electra import published
from ml_collections import ConfigDict

from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.training.settings import EvalConfig, LogConfig


def get_config() -> ConfigDict:
    model = ElectraConfig(
        vocab_size=2048,
        width=64,
        layers=2,
        heads=4,
        feed_forward=128,
        embedding=64,
        generator_width=32,
        generator_layers=2,
        generator_heads=2,
        generator_feed_forward=64,
        positions=64,
        dropout=0.0,
        attention_dropout=0.0,
        init_scale=0.1,
    )
    run = published(model, steps=300, batch=64, length=32, lr=1e-3)
    run = dataclasses.replace(
        run,
        train=dataclasses.replace(run.train, precision="float32"),
        optim=dataclasses.replace(run.optim, warmup=30),
        checkpoint=CheckpointConfig(every=50),
        eval=EvalConfig(every=150, batch=64),
        log=LogConfig(every=20),
    )
    return recipe(run)
