"""Hyper-parameters of fine-tuning as published, by family and task, with their sources."""

import contextlib
import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.tasks.glue import GLUE

# {dotted path of a field of FineTune: value}
Numbers = Mapping[str, Any]

# The tasks that a recipe may ask for; `text` is one's own.
KNOWN = (*GLUE, "squad", "squad2", "swag", "race", "text")


LARGE = 24  # layers of a large model


@dataclasses.dataclass(frozen=True, eq=False)
class Recipe:
    """How a family is fine-tuned. source: where that is published. every: what holds for every task. tasks: what a task has in its place.
    large: what models of 24 layers or more have in the place of `every`, also before `tasks`. grid: the candidates, where there are some,
    of which the best on the dev set is to be taken; `every` has one of them."""

    source: str
    every: Numbers
    tasks: Mapping[str, Numbers] = dataclasses.field(default_factory=dict)
    large: Numbers = dataclasses.field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)


def numbers(model: ModelConfig, task: str) -> dict[str, Any]:
    """The published settings of the family of `model` for a task, those of its nearest relative where the task has none.

    Raises UserError for a task that is not in KNOWN and for a family without published fine-tuning.
    """
    if task not in KNOWN:
        raise UserError(f"published is {task!r}", fix=f"use {', '.join(KNOWN)}, or '' for the numbers of the recipe")
    recipe = of(model)
    return {**recipe.every, **(recipe.large if model.layers >= LARGE else {}), **recipe.tasks.get(task, {})}


def source(model: ModelConfig, given: Numbers) -> str:
    """Where the numbers `given` are published, for any task and the family of `model`; '' if they are not."""
    with contextlib.suppress(UserError):
        if any(all(numbers(model, task).get(path) == value for path, value in given.items()) for task in KNOWN):
            return of(model).source
    return ""


def of(model: ModelConfig) -> Recipe:
    """The recipe of the family of `model`: of a pair of networks, that of the one that is fine-tuned. RoBERTa is a BERT whose positions
    start after the pad id. Raises UserError as `numbers`."""
    if model.kind == "pair":
        return of(model.discriminator)
    name = "roberta" if getattr(model, "first_position", 0) else model.kind
    if name == "bert" and model.width < 768:
        name = "bert_small"
    if name not in FAMILIES:
        fix = "set published='' and numbers of your own, such as optim.lr and train.epochs"
        raise UserError(f"no fine-tuning of {model.kind} is published whose numbers are known here", fix=fix)
    return FAMILIES[name]


_BERT = {
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
}
_SQUAD = {"train.length": 384, "train.batch": 12, "optim.lr": 3e-5, "train.epochs": 2.0}


def _steps(lr: float, batch: int, steps: int, warmup: int) -> dict[str, Any]:
    return {"optim.lr": lr, "train.batch": batch, "train.steps": steps, "optim.warmup": warmup}


# facebookresearch/fairseq examples/roberta/config/finetuning/*.yaml
_ROBERTA = {
    "mnli": _steps(1e-5, 32, 123_873, 7_432),
    "qnli": _steps(1e-5, 32, 33_112, 1_986),
    "qqp": _steps(1e-5, 32, 113_272, 28_318),
    "rte": _steps(2e-5, 16, 2_036, 122),
    "sst2": _steps(1e-5, 32, 20_935, 1_256),
    "mrpc": _steps(1e-5, 16, 2_296, 137),
    "cola": _steps(1e-5, 16, 5_336, 320),
    "stsb": _steps(2e-5, 16, 3_598, 214),
    "squad": {"optim.lr": 1.5e-5, "train.batch": 48, "train.epochs": 2.0, "optim.weight_decay": 0.01},
    "squad2": {"optim.lr": 1.5e-5, "train.batch": 48, "train.epochs": 2.0, "optim.weight_decay": 0.01},
}
# zihangdai/xlnet scripts/tpu_squad_large.sh, whose layer decay multiplies gradients (model_utils.py)
_XLNET_SQUAD = {
    "train.length": 512,
    **_steps(3e-5, 48, 8_000, 1_000),
    "optim.layer_decay": 0.75,
    "optim.layer_decay_top": 0,
    "optim.layer_decay_of": "gradient",
    "optim.layer_decay_exclude": ("embeddings/.*", "encoder/.*/attention/[a-z]+_bias", "encoder/.*/segment/table"),
    "task.max_answer": 64,
    "task.n_best": 5,
}
# google-research/albert run_glue.sh
_ALBERT = {
    "sst2": _steps(1e-5, 32, 20_935, 1_256),
    "mnli": _steps(3e-5, 128, 10_000, 1_000),
    "cola": _steps(1e-5, 16, 5_336, 320),
    "qnli": _steps(1e-5, 32, 33_112, 1_986),
    "qqp": _steps(5e-5, 128, 14_000, 1_000),
    "rte": _steps(3e-5, 32, 800, 200),
    "stsb": _steps(2e-5, 16, 3_598, 214),
    "mrpc": _steps(2e-5, 32, 800, 200),
}

FAMILIES: Mapping[str, Recipe] = MappingProxyType(
    {
        "bert": Recipe(
            source="Devlin et al. 2018, section 4 and appendix A.3; google-research/bert run_classifier.py, run_squad.py, README.md",
            every=_BERT,
            tasks={
                "squad": _SQUAD,
                "squad2": _SQUAD,
                "swag": {"optim.lr": 2e-5, "train.batch": 16, "train.epochs": 3.0},
            },
            grid={"optim.lr": (5e-5, 4e-5, 3e-5, 2e-5), "train.batch": (32, 16), "train.epochs": (3.0, 2.0, 4.0)},
        ),
        "bert_small": Recipe(
            source="google-research/bert README.md, the 24 smaller models",
            every={**_BERT, "train.epochs": 4.0, "optim.lr": 1e-4},
            tasks={"squad": _SQUAD, "squad2": _SQUAD},
            grid={"optim.lr": (3e-4, 1e-4, 5e-5, 3e-5), "train.batch": (8, 16, 32, 64, 128)},
        ),
        "roberta": Recipe(
            source="facebookresearch/fairseq examples/roberta/config/finetuning/*.yaml; Liu et al. 2019, appendix C",
            every={
                **_BERT,
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
            tasks=_ROBERTA,
            grid={"optim.lr": (1e-5, 2e-5, 3e-5), "train.batch": (16, 32)},
        ),
        # The numbers of the code; the paper's table has a weight decay of 0, and 3e-4 for the small model.
        "electra": Recipe(
            source="google-research/electra configure_finetuning.py, model/optimization.py; Clark et al. 2020, appendix B",
            every={
                **_BERT,
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
        ),
        # Of GLUE, MNLI is in the paper and STS-B in the README; `every` has the passes and the warm-up of the latter (1,200 · 32 / 5,749).
        "xlnet": Recipe(
            source="Yang et al. 2019, appendix A.4; zihangdai/xlnet README.md, scripts/*.sh, run_classifier.py",
            every={
                **_BERT,
                "train.epochs": 6.7,
                "optim.origin": "warmup_end",
                "optim.bias_correction": True,
                "optim.epsilon_added": "before_correction",
                "optim.weight_decay": 0.0,
            },
            tasks={
                "mnli": _steps(2e-5, 128, 10_000, 1_000),
                "stsb": _steps(5e-5, 32, 1_200, 120),
                "race": {"train.length": 512, **_steps(2e-5, 32, 12_000, 1_000)},
                "squad": _XLNET_SQUAD,
                "squad2": _XLNET_SQUAD,
            },
        ),
        # `every` has the passes and the warm-up of SST-2 (20,935 · 32 / 67,349).
        "albert": Recipe(
            source="google-research/albert run_glue.sh, optimization.py",
            every={**_BERT, "train.epochs": 10.0, "train.warmup": 0.06, "train.length": 512, "optim.lr": 1e-5},
            tasks=_ALBERT,
        ),
        "gpt": Recipe(
            source="openai/finetune-transformer-lm train.py, opt.py",
            every={
                **_BERT,
                "train.warmup": 0.002,
                "train.length": 512,
                "optim.lr": 6.25e-5,
                "optim.origin": "step_zero_ramp",
                "optim.epsilon": 1e-8,
                "optim.epsilon_added": "before_correction",
                "optim.bias_correction": True,
                "optim.decay_corrected": True,
            },
        ),
        # Sanh et al. 2019 give no numbers.
        "distilbert": Recipe(
            source="huggingface/transformers examples/pytorch/text-classification/README.md, with the warm-up of BERT",
            every={**_BERT, "optim.origin": "warmup_end", "optim.epsilon": 1e-8, "optim.bias_correction": True, "optim.weight_decay": 0.0},
            tasks={"squad": _SQUAD, "squad2": _SQUAD},
        ),
    }
)
