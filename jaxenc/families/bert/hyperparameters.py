"""The published fine-tuning of BERT and RoBERTa."""

from jaxenc.families.hyperparameters import Hyperparameters, in_steps

_SQUAD = {"train.length": 384, "train.batch": 12, "optim.lr": 3e-5, "train.epochs": 2.0}
# facebookresearch/fairseq examples/roberta/config/finetuning/*.yaml
_ROBERTA_TASKS = {
    "mnli": in_steps(1e-5, 32, 123_873, 7_432),
    "qnli": in_steps(1e-5, 32, 33_112, 1_986),
    "qqp": in_steps(1e-5, 32, 113_272, 28_318),
    "rte": in_steps(2e-5, 16, 2_036, 122),
    "sst2": in_steps(1e-5, 32, 20_935, 1_256),
    "mrpc": in_steps(1e-5, 16, 2_296, 137),
    "cola": in_steps(1e-5, 16, 5_336, 320),
    "stsb": in_steps(2e-5, 16, 3_598, 214),
    "squad": {"optim.lr": 1.5e-5, "train.batch": 48, "train.epochs": 2.0, "optim.weight_decay": 0.01},
    "squad2": {"optim.lr": 1.5e-5, "train.batch": 48, "train.epochs": 2.0, "optim.weight_decay": 0.01},
}

BERT = Hyperparameters(
    source="Devlin et al. 2018, section 4 and appendix A.3; google-research/bert run_classifier.py, run_squad.py, README.md",
    every={
        "train.batch": 32,
        "train.epochs": 3.0,
        "train.steps": 0,
        "train.warmup": 0.1,
        "train.length": 128,
        "optim.lr": 2e-5,
        "optim.warmup": 0,
        "optim.schedule": "linear",
        "optim.origin": "step_zero",
        "optim.beta1": 0.9,
        "optim.beta2": 0.999,
        "optim.epsilon": 1e-6,
        "optim.bias_correction": False,
        "optim.weight_decay": 0.01,
        "optim.clip": 1.0,
    },
    tasks={
        "squad": _SQUAD,
        "squad2": _SQUAD,
        "swag": {"optim.lr": 2e-5, "train.batch": 16, "train.epochs": 3.0},
    },
    grid={"optim.lr": (5e-5, 4e-5, 3e-5, 2e-5), "train.batch": (32, 16), "train.epochs": (3.0, 2.0, 4.0)},
)
SMALL_BERT = Hyperparameters(
    source="google-research/bert README.md, the 24 smaller models",
    every={**BERT.every, "train.epochs": 4.0, "optim.lr": 1e-4},
    tasks={"squad": _SQUAD, "squad2": _SQUAD},
    grid={"optim.lr": (3e-4, 1e-4, 5e-5, 3e-5), "train.batch": (8, 16, 32, 64, 128)},
)
ROBERTA = Hyperparameters(
    source="facebookresearch/fairseq examples/roberta/config/finetuning/*.yaml; Liu et al. 2019, appendix C",
    every={
        **BERT.every,
        "train.batch": 16,
        "train.epochs": 10.0,
        "train.warmup": 0.06,
        "train.length": 512,
        "train.select": "best",
        "optim.lr": 1e-5,
        "optim.origin": "warmup_end",
        "optim.beta2": 0.98,
        "optim.bias_correction": True,
        "optim.epsilon_added": "before_correction",
        "optim.weight_decay": 0.1,
        "optim.decay_exclude": (),
        "optim.clip": 0.0,
    },
    tasks=_ROBERTA_TASKS,
    grid={"optim.lr": (1e-5, 2e-5, 3e-5), "train.batch": (16, 32)},
)
