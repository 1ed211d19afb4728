"""RoBERTa (Liu et al. 2019) as the paper trained it: what the recipes of this folder share."""

from jaxenc.data.sources import DataConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def published(model: BertConfig, lr: float, warmup: int, microbatches: int) -> Run:
    """The paper's pretraining (table 9): 500,000 steps of 8,192 rows of 512 tokens, full sentences that may cross documents.

    Masks as fairseq draws them (data/mask_tokens_dataset.py); Adam as fairseq computes it (optim/adam.py), weight decay on every
    parameter, no clipping; a linear warm-up and a linear decay from its end (lr_scheduler/polynomial_decay_schedule.py). One thing
    differs: fairseq starts the pad rows of both tables at zero, and here they start like the others. No text reads them.

    microbatches: so that a part of the batch fits one GPU of 80 GB in bfloat16, with dropout on the attention weights as published. Any
    divisor of 8,192 gives the same result.
    """
    return Run(
        objective=fairseq_masking(),
        model=model,
        data=DataConfig(rows="full_sentences", length=512),
        train=TrainConfig(steps=500_000, batch=8192, microbatches=microbatches),
        optim=fairseq_adam(lr, warmup),
    )


def fairseq_masking() -> MlmConfig:
    """0.15 of the tokens on average, <s> and </s> among them; random ids from all but the four at the front."""
    return MlmConfig(rounding="stochastic", candidates="all", replacements="all_but_control")


def fairseq_adam(lr: float, warmup: int) -> OptimConfig:
    """The paper's optimizer (table 9) by fairseq's rule: bias correction after epsilon, decay of every parameter, no clipping."""
    return OptimConfig(lr=lr, warmup=warmup, beta2=0.98, epsilon_added="before_correction", clip=0.0, decay_exclude=())
