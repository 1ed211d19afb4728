"""ELECTRA (Clark et al. 2020) as google-research/electra trained it: what the recipes of this folder share."""

from jaxenc.data.sources import DataConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.electra.sizes import ELECTRA, electra
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def published(model: ElectraConfig, steps: int, batch: int, length: int, lr: float, rate: float = 0.15) -> Run:
    """The pretraining of configure_pretraining.py: places drawn with replacement, 85 % of the draws become [MASK], the weights 1 and 50
    (pretrain/pretrain_helpers.py); Adam without bias correction, decay from step 0 times the ramp of the warm-up (model/optimization.py).

    Three things differ: build_pretraining_dataset.py cuts most rows into two segments, and here a row is one; it may shorten a row at
    random; and what a place drawn twice holds is one of its samples, not their mean id. configure_pretraining.py allows int((rate + 0.005)
    · length) predictions a row, which rows of 100 tokens and more never reach, so no such limit is set here.
    """
    return Run(
        objective=RtdConfig(rate=rate, mask_share=0.85, with_replacement=True),
        model=model,
        data=DataConfig(rows="doc_sentences", length=length),
        train=TrainConfig(steps=steps, batch=batch),
        optim=OptimConfig(lr=lr, warmup=10_000, origin="step_zero_ramp", bias_correction=False),
    )


def published_small() -> Run:
    """ELECTRA-small as its recipe trains it, which the ablations start from."""
    return published(electra(*ELECTRA["small"]), steps=1_000_000, batch=128, length=128, lr=5e-4)
