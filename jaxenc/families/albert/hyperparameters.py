"""The published fine-tuning of ALBERT."""

from jaxenc.families.bert.hyperparameters import BERT
from jaxenc.families.hyperparameters import Hyperparameters, in_steps

# google-research/albert run_glue.sh
_TASKS = {
    "sst2": in_steps(1e-5, 32, 20_935, 1_256),
    "mnli": in_steps(3e-5, 128, 10_000, 1_000),
    "cola": in_steps(1e-5, 16, 5_336, 320),
    "qnli": in_steps(1e-5, 32, 33_112, 1_986),
    "qqp": in_steps(5e-5, 128, 14_000, 1_000),
    "rte": in_steps(3e-5, 32, 800, 200),
    "stsb": in_steps(2e-5, 16, 3_598, 214),
    "mrpc": in_steps(2e-5, 32, 800, 200),
}
# `every` has the passes and the warm-up of SST-2 (20,935 · 32 / 67,349).
ALBERT = Hyperparameters(
    source="google-research/albert run_glue.sh, optimization.py",
    every={**BERT.every, "train.epochs": 10.0, "train.warmup": 0.06, "train.length": 512, "optim.lr": 1e-5},
    tasks=_TASKS,
)
