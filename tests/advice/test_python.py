"""The advice about arguments in Python, followed: of heads, of what a model encodes, and of rules for continuations."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jaxenc import heads, rng
from jaxenc.errors import UserError
from jaxenc.families import with_built_in
from jaxenc.families.bert.model import BertConfig
from jaxenc.heads.contract import Head, Label, registry
from jaxenc.inference import inputs
from jaxenc.inference.sampling import Sampling
from tests import tiny
from tests.advice.following import follow, listed

Arguments = dict[str, Any]
# What a fix says -> other values of the arguments.
Rules = dict[str, Callable[[re.Match[str], Arguments], list[Arguments]]]


def by(rules: Rules) -> Callable[[UserError, Arguments], list[Arguments]]:
    def advised(error: UserError, given: Arguments) -> list[Arguments]:
        for pattern, rule in rules.items():
            if match := re.search(pattern, error.fix):
                return [{**given, **change} for change in rule(match, given)]
        raise AssertionError(f"{error.made}: no rule follows the advice of {error}")

    return advised


LABEL = Label("kind", "int32")


def loss(*arguments: Any) -> None:
    """Stands for the loss of a head; it is not called."""


def make(given: Arguments) -> Head:
    return Head(**{"name": "own", "role": "tokens", "site": rng.FIRST_OWN_SITE, "module": loss, **given})


def register(given: Arguments) -> None:
    registry([*heads.BUILT_IN.values(), given["head"] if "head" in given else make(given)])


OF_HEADS: Rules = {
    r"^choose another( name)?$": lambda match, given: [{"name": "another", **({"labels": (LABEL,)} if match[1] else {})}],
    r"^(?:use a|give it a unique) number from (\d+) to (\d+)$": lambda match, given: [{"site": int(match[i])} for i in (1, 2)],
    r"^give a function$": lambda match, given: [{name: loss} for name, value in given.items() if name in ("module", "prediction")],
    r"^give a tuple of Label, \(Label": lambda match, given: [{"labels": (LABEL,), "loss": loss}],
    r"^give both or neither$": lambda match, given: [{"labels": (LABEL,), "loss": loss}, {"labels": (), "loss": None}],
    r"^give each its own$": lambda match, given: [{"labels": (LABEL, Label("other", "int32"))}],
    r"^use int32 or float32, with the axis '' or 'length' or 'classes'$": lambda match, given: [
        {"labels": (Label("kind", dtype, axis),)} for dtype in ("int32", "float32") for axis in ("", "length", "classes")
    ],
    r"^give them to a head with the role (\w+) and without labels$": lambda match, given: [{"role": match[1], "labels": (), "loss": None}],
    r"^use (.+) or a number that is not negative, and 0 for float32$": lambda match, given: [
        *({"labels": (Label("kind", "int32", bound=bound),), "role": "text"} for bound in [*listed(match[1]), 7]),
        {"labels": (Label("kind", "float32", bound=0),)},
    ],
    r"^use one axis for all$": lambda match, given: [
        {"labels": tuple(dataclasses.replace(label, axis=axis) for label in given["labels"])} for axis in ("", "length", "classes")
    ],
    r"^set role='(\w+)' and give a label of rows$": lambda match, given: [
        {"role": match[1], "labels": tuple(dataclasses.replace(label, axis="") for label in given["labels"])}
    ],
    r"^use ([\w, ]+)$": lambda match, given: [{"role": role} for role in listed(match[1])],
    r"^give a jaxenc.heads.Head$": lambda match, given: [{"head": make({})}],
}


@pytest.mark.parametrize(
    "given",
    [
        {"role": "words"},
        {"name": "a-b"},
        {"name": "mlm"},
        {"site": -1},
        {"site": rng.SITES[next(iter(rng.SITES))]},
        {"module": 3},
        {"labels": LABEL, "loss": loss},
        {"labels": (LABEL,)},
        {"labels": (LABEL, LABEL), "loss": loss},
        {"labels": (Label("kind", "int8"),), "loss": loss},
        {"labels": (Label("kind", "int32", bound=-1),), "loss": loss},
        {"labels": (LABEL, Label("other", "int32", "length")), "loss": loss},
        {"labels": (Label("kind", "int32", "length", "choices"),), "loss": loss},
        {"labels": (Label("tokens", "float32"),), "loss": loss},
        {"targets": loss},
        {"role": "vocabulary", "targets": loss, "labels": (LABEL,), "loss": loss},
        {"head": 3},
    ],
    ids=lambda given: "-".join(given),
)
def test_of_heads(given: Arguments) -> None:
    assert follow(register, given, by(OF_HEADS))


def encode(given: Arguments) -> None:
    """The rows of what `Model.encode` takes, for a model of 64 positions and 200 pieces."""
    kind = {"texts": inputs.of_texts, "words": inputs.of_words, "tokens": inputs.of_tokens}[next(iter(given))]
    kind(tiny.MODEL, None, *given.values())


OF_ROWS: Rules = {
    r"or use encode\((\w+)=": lambda match, given: [{match[1]: [[5, 6]]}],
    r"^give each as a str$|^give \[": lambda match, given: [{next(iter(given)): ["one"]}],
    r"^give one number a token$": lambda match, given: [{"mask": np.ones_like(given["tokens"])}],
    r"^shorten it$": lambda match, given: [{"tokens": np.asarray(given["tokens"])[:, :64]}],
    r"^give rows of numbers": lambda match, given: [{"tokens": [given["tokens"]]}],
    r"^give integers$": lambda match, given: [{"tokens": [[5, 6]]}],
    r"^pad them to one length and say where with (\w+)=$": lambda match, given: [{"tokens": [[5, 6], [7, 0]], match[1]: [[1, 1], [1, 0]]}],
    r"^use this model's tokenizer$": lambda match, given: [{"tokens": [[5, 6]]}],
}


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": [[5, 6]], "mask": [[1]]},
        {"tokens": [[5] * 70]},
        {"tokens": [5, 6]},
        {"tokens": [[0.5]]},
        {"tokens": [[5, 6], [7]]},
        {"tokens": [[5, 600]]},
    ],
    ids=str,
)
def test_of_rows(given: Arguments) -> None:
    assert follow(encode, given, by(OF_ROWS))


OF_SAMPLING: Rules = {
    r"^it takes 0, for all tokens": lambda match, given: [{"top_k": 0}, {"top_k": 3}],
    r"^it takes 0 to 2\^31 - 1$": lambda match, given: [{"seed": 0}, {"seed": 2**31 - 1}],
    r"^it takes .*0": lambda match, given: [{"temperature": 0.0}, {"temperature": 1.0}],
}


@pytest.mark.parametrize("given", [{"top_k": -1}, {"seed": -1}, {"temperature": -1.0}, {"temperature": float("nan")}], ids=str)
def test_of_sampling(given: Arguments) -> None:
    assert follow(lambda some: Sampling(**some), given, by(OF_SAMPLING))


def own(kind: str, frozen: bool = True) -> type:
    return dataclasses.dataclass(frozen=frozen)(type("Own", (BertConfig,), {"kind": kind, "__annotations__": {}}))


OF_MODELS: Rules = {
    r"^give it another `kind`$|^give the class a `kind`": lambda match, given: [{"model": own("another")}],
    r"^give a subclass of EncoderConfig or ModelConfig, not an instance of it$": lambda match, given: [{"model": own("another")}],
}


@pytest.mark.parametrize("model", [own("bert"), own(""), BertConfig()], ids=["taken", "without", "instance"])
def test_of_models(model: Any) -> None:
    assert follow(lambda given: with_built_in(given["model"]), {"model": model}, by(OF_MODELS))
