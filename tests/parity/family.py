"""What a file in `families/` states of a family for the comparisons with transformers. Imports neither transformers nor torch."""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

# Of the random tiny models; EMBEDDING is the width of token tables that differ from the model's.
WIDTH, LAYERS, POSITIONS, EMBEDDING = 8, 2, 14, 6
# {our head of a fine-tuned model: how the name of its class ends}
TUNED = MappingProxyType(
    {
        "classifier": "ForSequenceClassification",
        "regressor": "ForSequenceClassification",
        "multilabel": "ForSequenceClassification",
        "tags": "ForTokenClassification",
        "spans": "ForQuestionAnswering",
        "choice": "ForMultipleChoice",
    }
)
# What the short suite may compare of a case: numbers and gradients with golden arrays (test_golden.py); numbers, gradients and
# `jaxenc convert --check` with transformers itself (test_live.py).
SHORT = ("numbers", "gradients", "live numbers", "live gradients", "check")


@dataclasses.dataclass(frozen=True)
class Family:
    """Classes of transformers with a common beginning of their names, `name`, and a config `{name}Config`.

    sizes: the arguments of the config for a model of a width, beside those that every family has; activation: the field that names the
    form of GELU; pad: the id of padding; pads_left: padding is on the left; typed: the models are given token types; tuned: as TUNED, of
    the heads that fine-tuned models have; adapt: changes a model of the family before it computes.
    """

    name: str
    sizes: Callable[[int], dict[str, Any]]
    activation: str = "hidden_act"
    pad: int = 0
    pads_left: bool = False
    typed: bool = True
    tuned: Mapping[str, str] = dataclasses.field(default_factory=lambda: TUNED)
    adapt: Callable[[Any], None] = lambda model: None


@dataclasses.dataclass(frozen=True)
class Case:
    """One class of a family, `{family.name}{ending}`.

    labels: the arguments that make it return a loss; logits: {our output: attribute of its output}; seed: of the weights and rows of its
    golden arrays, any number; activations: transformers' names for the forms of GELU that it can have; short: as SHORT, what the short
    suite compares, which has each kind of output once. The full suite compares every case in every way.
    """

    family: Family
    ending: str
    labels: tuple[str, ...] = ()
    logits: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seed: int = 0
    activations: tuple[str, ...] = ("gelu", "gelu_new")
    short: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := set(self.short) - set(SHORT):
            raise ValueError(f"{self.architecture}: short has {sorted(unknown)}; it takes {SHORT}")

    @property
    def architecture(self) -> str:
        """The name of the class."""
        return f"{self.family.name}{self.ending}"


def masked(family: Family, seed: int, *short: str, activations: tuple[str, ...] = ("gelu", "gelu_new")) -> Case:
    """Its masked language model."""
    return Case(family, "ForMaskedLM", ("labels",), {"mlm": "logits"}, seed, activations, short)


def texts(family: Family, seed: int, *short: str) -> Case:
    """Its classifier of texts."""
    return Case(family, family.tuned["classifier"], ("labels",), {"classifier": "logits"}, seed, short=short)


def tags(family: Family, seed: int, *short: str) -> Case:
    """Its classifier of tokens."""
    return Case(family, family.tuned["tags"], ("labels",), {"tags": "logits"}, seed, short=short)


def answers(family: Family, seed: int, *short: str) -> Case:
    """Its model of answers in a text."""
    logits = {"spans": "start_logits end_logits"}
    return Case(family, family.tuned["spans"], ("start_positions", "end_positions"), logits, seed, short=short)
