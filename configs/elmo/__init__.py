"""ELMo (Peters et al. 2018) as allenai/bilm-tf trained it: what the recipes of this folder share."""

from jaxenc.data.sources import DataConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.elmo.sizes import ELMO, OPTIM, elmo
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig

BATCH, LENGTH, EPOCHS = 128 * 3, 20, 10
# The words of the training part of the One Billion Word benchmark, with one marker a sentence (bin/train_elmo.py).
BILLION = 768_648_884


def published(size: str, tokens: int = BILLION) -> Run:
    """Ten epochs of `tokens` words in rows of 20, three GPUs of 128 each; Adagrad at a constant 0.2 from accumulators of 1, gradients of
    20 times the loss clipped at 10; 8,192 of 793,471 words sampled in each direction (bin/train_elmo.py, bilm/training.py).

    Three things differ. Both directions read one part of the text at a time, where there two shuffled readers do; sentences keep the order
    of the text and are not shuffled; the 384 rows of a step share their negatives, which each GPU drew for itself there.
    """
    return Run(
        objective=BilmConfig(),
        model=model(size),
        data=DataConfig(rows="sentences", length=LENGTH),
        train=TrainConfig(steps=EPOCHS * (tokens // (BATCH * LENGTH)), batch=BATCH),
        optim=OptimConfig(**OPTIM),
    )


def model(size: str) -> ElmoConfig:
    """The published model of this size (allennlp.org/elmo)."""
    return elmo(*ELMO[size])
