"""The published fine-tuning of ELECTRA, with the numbers of its code. The paper's table differs: a weight decay of 0, and a rate of 3e-4
for the small model."""

from jaxenc.families.bert.hyperparameters import BERT
from jaxenc.families.hyperparameters import Hyperparameters

ELECTRA = Hyperparameters(
    source="google-research/electra configure_finetuning.py, model/optimization.py; Clark et al. 2020, appendix B",
    every={
        **BERT.every,
        "optim.lr": 1e-4,
        "optim.origin": "step_zero_ramp",
        "optim.layer_decay": 0.8,
        "optim.layer_decay_top": 2,
    },
    large={"optim.lr": 5e-5, "optim.layer_decay": 0.9},
    tasks={
        "mrpc": {"task.double_unordered": True},
        "stsb": {"task.double_unordered": True, "task.scaled": True, "train.epochs": 10.0},
        "rte": {"train.epochs": 10.0},
        "squad": {"train.length": 512, "train.epochs": 2.0},
        "squad2": {"train.length": 512, "train.epochs": 2.0, "task.null_threshold": -2.75},
    },
)
