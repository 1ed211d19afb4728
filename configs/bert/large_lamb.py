"""BERT-large with LAMB in two phases, as NVIDIA trains it (DeepLearningExamples, PyTorch/LanguageModeling/BERT).

    jaxenc pretrain --config bert/large_lamb --config.data.path=DATA --workdir RUN --config.train.microbatches=64

Phase 1: 7,038 steps of 65,536 rows of 128 tokens, rate 6e-3, warm-up 28.43 %. Phase 2: 1,563 steps of 32,768 rows of 512 tokens, rate
4e-3, warm-up 12.8 %; the rate falls with the square root of the steps left. Their final loss over 5 seeds is 1.265 ± 0.023 (their
README). Not yet run here.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.bert import published
from ml_collections import ConfigDict

from jaxenc.families.bert.sizes import BERT, bert
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.phases import Phases


def get_config() -> ConfigDict:
    phases = Phases(
        steps=(7038, 1563),
        length=(128, 512),
        batch=(65_536, 32_768),
        max_predictions=(20, 80),
        lr=(6e-3, 4e-3),
        warmup=(2001, 200),
    )
    optim = OptimConfig(name="lamb", schedule="square_root", origin="step_zero")
    return recipe(dataclasses.replace(published(bert(*BERT["large"])), phases=phases, optim=optim))
