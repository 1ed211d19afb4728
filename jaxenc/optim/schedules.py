"""The learning rate as a pure function of the step within a phase."""

import math
from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array

# The share of the rate that remains, from the share of steps that is left. Integer powers keep 0 and 1 exact; the cosine is written as a
# sine, 1 - cos(pi * left) = 2 sin(pi / 2 * left)^2, which keeps its digits in the last steps.
DECAYS: Mapping[str, Callable[[Array], Array]] = {
    "linear": lambda left: left**1,
    "square_root": lambda left: left**0.5,
    "cosine": lambda left: jnp.sin(0.5 * math.pi * left) ** 2,
    "constant": lambda left: left**0,
    "slanted": lambda left: left**1,
}


def learning_rate(schedule: str, origin: str, lr: float, warmup: int, steps: int, ratio: float) -> Callable[[Array], Array]:
    """The rate of update `step` (i32, 0 for the first of a phase of `steps`) as a float32 of the same shape.

    Below `warmup` it is lr · step / warmup, so the first update of a warm-up has the rate 0. From there it is lr · left, sqrt(left) or
    (1 - cos(pi · left)) / 2, where `left` falls linearly to 0 at `steps` and stays there; it is 1 at `warmup` under the origin `warmup_end`
    (facebookresearch/fairseq:fairseq/optim/lr_scheduler/polynomial_decay_schedule.py, end rate 0) and 1 at step 0 under `step_zero`
    (google-research/bert:optimization.py). Under `step_zero_ramp` the whole of the decay from step 0 is multiplied by the ramp
    min(1, step / warmup) (google-research/electra:model/optimization.py). `square_root` from `step_zero` is NVIDIA's rule for LAMB
    (NVIDIA/DeepLearningExamples:PyTorch/LanguageModeling/BERT/schedulers.py, PolyWarmUpScheduler), which counts its steps from 1. `cosine`
    from `step_zero` is warmup_cosine of openai/finetune-transformer-lm:opt.py, and `linear` from `step_zero_ramp` its warmup_linear.

    `slanted` is the slanted triangle of Howard and Ruder 2018, equation 3, whatever the origin: it rises linearly from lr / ratio at step 0
    to lr at `warmup`, their cut = floor(cut_frac · steps), and falls linearly to lr / ratio at `steps`. Where cut_frac · steps is not an
    integer, theirs falls faster, below 0 in the end (19 steps, cut_frac 0.1). The other schedules do not read `ratio`.
    """
    start = warmup if origin == "warmup_end" or schedule == "slanted" else 0
    # Differences of integers, so that the last steps of a long phase do not lose digits.
    span = max(steps - start, 1)

    def rate(step: Array) -> Array:
        left = jnp.maximum(steps - step, 0).astype(jnp.float32) / span
        ramp = step.astype(jnp.float32) / max(warmup, 1)
        decay = DECAYS[schedule](left)
        warming = ramp * decay if origin == "step_zero_ramp" and schedule != "slanted" else ramp
        share = jnp.where(step < warmup, warming, decay)
        if schedule == "slanted":
            share = (1 + share * (ratio - 1)) / ratio
        return jnp.float32(lr) * share

    return rate
