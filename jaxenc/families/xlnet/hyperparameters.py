"""The published fine-tuning of XLNet."""

from jaxenc.families.bert.hyperparameters import BERT
from jaxenc.families.hyperparameters import Hyperparameters, in_steps

# zihangdai/xlnet scripts/tpu_squad_large.sh, whose layer decay multiplies gradients (model_utils.py)
_SQUAD = {
    "train.length": 512,
    **in_steps(3e-5, 48, 8_000, 1_000),
    "optim.layer_decay": 0.75,
    "optim.layer_decay_top": 0,
    "optim.layer_decay_of": "gradient",
    "optim.layer_decay_exclude": ("embeddings/.*", "encoder/.*/attention/[a-z]+_bias", "encoder/.*/segment/table"),
    "task.max_answer": 64,
    "task.n_best": 5,
}
# Of GLUE, MNLI is in the paper and STS-B in the README; `every` has the passes and the warm-up of the latter (1,200 · 32 / 5,749).
XLNET = Hyperparameters(
    source="Yang et al. 2019, appendix A.4; zihangdai/xlnet README.md, scripts/*.sh, run_classifier.py",
    every={
        **BERT.every,
        "train.epochs": 6.7,
        "optim.origin": "warmup_end",
        "optim.bias_correction": True,
        "optim.epsilon_added": "before_correction",
        "optim.weight_decay": 0.0,
    },
    tasks={
        "mnli": in_steps(2e-5, 128, 10_000, 1_000),
        "stsb": in_steps(5e-5, 32, 1_200, 120),
        "race": {"train.length": 512, **in_steps(2e-5, 32, 12_000, 1_000)},
        "squad": _SQUAD,
        "squad2": _SQUAD,
    },
)
