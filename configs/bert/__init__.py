"""BERT (Devlin et al. 2018) as google-research/bert trained it: what the recipes of this folder share."""

from jaxenc.data.sources import DataConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.phases import Phases
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def published(model: BertConfig) -> Run:
    """The paper's pretraining: 1,000,000 steps of 256 rows, the first 90 % at 128 tokens and the rest at 512, one schedule.

    Adam without bias correction, decay from step 0 with the warm-up spliced over it (optimization.py); random replacements from the
    whole vocabulary list (create_pretraining_data.py).
    """
    return Run(
        objective=PairConfig(replacements="all"),
        model=model,
        data=DataConfig(rows="pairs"),
        train=TrainConfig(batch=256),
        phases=Phases(steps=(900_000, 100_000), length=(128, 512), max_predictions=(20, 77), one_schedule=True),
        optim=OptimConfig(lr=1e-4, warmup=10_000, origin="step_zero", bias_correction=False),
    )
