"""The settings of the optimizer and its learning rate."""

import dataclasses

from jaxenc.config import at_least
from jaxenc.errors import UserError

CHOICES = {
    "name": ("adamw", "lamb", "adagrad"),
    "schedule": ("linear", "square_root", "constant"),
    "origin": ("warmup_end", "step_zero", "step_zero_ramp"),
    "epsilon_added": ("after_correction", "before_correction"),
}


@dataclasses.dataclass(frozen=True)
class OptimConfig:
    """Defaults: BERT-base's numbers (google-research/bert:optimization.py) with the bias correction that BERT's code leaves out.

    name: `adamw` (Loshchilov and Hutter 2019), `lamb` (You et al. 2020, for batches of many thousands) or `adagrad` (Duchi et al. 2011),
        which reads no beta, no epsilon and no bias_correction.
    lr: the rate at the end of the warm-up; warmup: steps of linear warm-up from 0.
    schedule: `linear` or `square_root` decay to 0 at the last step, or `constant` after the warm-up.
    origin: where the decay starts. `warmup_end` is fairseq's (RoBERTa) and XLNet's; `step_zero` is BERT's and NVIDIA's: the warm-up
        replaces the first steps of a decay that runs from step 0, so the rate drops at its end by the share already decayed;
        `step_zero_ramp` is ELECTRA's: the decay from step 0 times the ramp of the warm-up.
    bias_correction: divide the moments by 1 - beta^t, as Adam's paper does; False is the original BERT, ELECTRA and ALBERT.
    epsilon_added: to the root of the second moment `after_correction` of its bias, as Adam's paper (algorithm 1) and most libraries do,
        or `before_correction`, as fairseq does (fairseq/optim/adam.py), whose epsilon weighs more in the first steps.
    accumulator: what Adagrad's sums of squares start from, as tf.train.AdagradOptimizer; ELMo's is 1 (allenai/bilm-tf:bilm/training.py).
    clip: limit of the gradient's global norm; 0 is off.
    decay_exclude: patterns (`re.fullmatch`) of the paths of parameters without weight decay and, under lamb, without a trust ratio;
        () decays every parameter, as fairseq does.
    freeze: patterns of the paths of parameters that are not trained.
    """

    name: str = "adamw"
    lr: float = 1e-4
    warmup: int = 10_000
    schedule: str = "linear"
    origin: str = "warmup_end"
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    bias_correction: bool = True
    epsilon_added: str = "after_correction"
    accumulator: float = 1.0
    weight_decay: float = 0.01
    clip: float = 1.0
    decay_exclude: tuple[str, ...] = (".*/bias", ".*/norm/.*")
    freeze: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise UserError(f"optim.{field} is {getattr(self, field)!r}: use {' or '.join(choices)}")
        at_least(0, "optim", self, "lr", "warmup", "clip", "weight_decay")
        for field in ("beta1", "beta2"):
            if not 0 < getattr(self, field) < 1:
                raise UserError(f"optim.{field} is {getattr(self, field)}: use a number between 0 and 1")
        for field in ("epsilon", "accumulator"):
            if not getattr(self, field) > 0:
                raise UserError(f"optim.{field} is {getattr(self, field)}: it takes a positive number")
