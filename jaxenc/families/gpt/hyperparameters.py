"""The published fine-tuning of GPT."""

from jaxenc.families.bert.hyperparameters import BERT
from jaxenc.families.hyperparameters import Hyperparameters

GPT = Hyperparameters(
    source="openai/finetune-transformer-lm train.py, opt.py",
    every={
        **BERT.every,
        "train.warmup": 0.002,
        "train.length": 512,
        "optim.lr": 6.25e-5,
        "optim.origin": "step_zero_ramp",
        "optim.epsilon": 1e-8,
        "optim.epsilon_added": "before_correction",
        "optim.bias_correction": True,
        "optim.decay_corrected": True,
    },
)
