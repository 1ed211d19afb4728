"""XLNet (Yang et al. 2019) as it was trained: what the recipes of this folder share."""

from jaxenc.data.sources import DataConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def published(model: XlnetConfig, batch: int, microbatches: int) -> Run:
    """500,000 steps at 4e-4 of rows of 512 tokens, 256 of them reused, a memory of 384 and 85 predictions (paper, table 8; zihangdai/xlnet
    README.md).

    The choice of predictions has the faults of data_utils.py (`PlmConfig`). Adam without bias correction, weight decay 0.01 of all but
    the layer norms and the biases; the three biases of attention do decay (model_utils.py), and the default patterns leave them in. One
    thing differs: train.py ends at a thousandth of the learning rate, and here it ends at 0.

    microbatches: parts of the batch, for the memory of the devices; the result is the same. What the slots remember comes on top of it,
    batch · layers · 384 · width numbers of two bytes over all devices: 14.5 GB for the base and 155 GB for the large model.
    """
    return Run(
        objective=published_objective(),
        model=model,
        data=DataConfig(rows="streams", length=512, reuse=256),
        train=TrainConfig(steps=500_000, batch=batch, microbatches=microbatches),
        optim=OptimConfig(lr=4e-4, warmup=40_000, bias_correction=False),
    )


def published_objective() -> PlmConfig:
    """The numbers of the README, an n-gram of n tokens, SEP and CLS among the candidates, and one shuffle for all blocks of a half."""
    return PlmConfig(unit="tokens", candidates="all", shuffle="shared")
