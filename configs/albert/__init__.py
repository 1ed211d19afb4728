"""ALBERT (Lan et al. 2019) as google-research/albert trained it: what the recipes of this folder share."""

import dataclasses

from jaxenc.families.albert.model import AlbertConfig
from jaxenc.objectives.pair import SentenceOrderConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def published(model: AlbertConfig) -> Run:
    """The paper's pretraining: 125,000 steps of 4,096 rows of 512 tokens with LAMB, n-grams of 1 to 3 words masked, sentence order.

    LAMB has no bias correction (lamb_optimizer.py), the rate falls to 0 on a line from step 0 with the warm-up spliced over it, and random
    replacements come from the whole vocabulary (run_pretraining.py, create_pretraining_data.py of google-research/albert). Rows predict
    15 % of their tokens, 77 of 512, as the paper has it; the flag's default, 20, would predict 4 %. Version 2 of the models trained 10 M
    steps (base) or 3 M without dropout (README.md).
    """
    objective = SentenceOrderConfig(unit="ngrams", replacements="all")
    return Run(
        objective=objective,
        model=model,
        data=dataclasses.replace(objective.rows, length=512),
        train=TrainConfig(batch=4096, steps=125_000),
        optim=OptimConfig(name="lamb", lr=1.76e-3, warmup=3125, origin="step_zero", bias_correction=False),
    )
