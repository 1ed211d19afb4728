"""The fields of transformers' config.json that all families share: sizes, activations and the names of classes."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxenc import config as configs
from jaxenc.errors import UserError
from jaxenc.families.contract import EncoderConfig, ModelConfig

M = TypeVar("M", bound=ModelConfig)
# Our activation for each value of `hidden_act` in transformers 5.24 (activations.py) and in google-research/bert (modeling.py).
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "relu": "relu",
    "tanh": "tanh",
}
GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh"}
# The value of `hidden_act` that an export writes for each of our activations.
HIDDEN_ACT = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "tanh": "tanh"}
# Values of `problem_type` (transformers' configuration_utils.py).
PROBLEMS = ("regression", "single_label_classification", "multi_label_classification")
# More than any model has: a larger number comes from a damaged file, and memory would be allocated before the shapes are compared.
LARGEST_NUMBER = (1 << 31) - 1


def sizes(
    data: Mapping[str, Any], fields: Mapping[str, str], activations: Mapping[str, str], where: Path, named: str = "hidden_act"
) -> dict[str, Any]:
    """{our field: value} of those of `fields` ({ours: theirs}) that `data` has, and of the activation.

    activations: {their value: ours}; named: their field of the activation. Raises UserError for an unknown activation and for a number
    that is too large for an array.
    """
    activation = data.get(named, "gelu")
    if not isinstance(activation, str) or activation not in activations:
        raise UserError(f"{named} is {activation!r}", where, f"only {', '.join(activations)} can be converted")
    for name in (*fields.values(), "max_position_embeddings"):
        if isinstance(data.get(name), int | float) and data[name] > LARGEST_NUMBER:
            raise UserError(f"{name} is {data[name]}", where, "fix it: no array is that large")
    return {**{ours: data[theirs] for ours, theirs in fields.items() if theirs in data}, "activation": activations[activation]}


def built(cls: type[M], values: Mapping[str, Any], where: Path, fields: Mapping[str, str]) -> M:
    """The config of a model from its fields. fields: {ours: theirs} of those that the file `where` has. Raises UserError, which begins with
    `where` and names their fields, for an invalid value."""
    theirs = lambda text: re.sub(r"\bmodel\.(\w+)", lambda found: fields.get(found[1], found[0]), text)
    try:
        return configs.from_dict(cls, values, "model")
    except UserError as error:
        raise error.reworded(theirs(error.what), theirs(error.where), theirs(error.fix)).at(where) from error


def only(settings: Mapping[str, Any], data: Mapping[str, Any], where: Path) -> None:
    """Raises UserError where a config.json sets one of `settings` to another value than the one that is computed here."""
    for name, value in settings.items():
        if data.get(name, value) != value:
            raise UserError(f"{name} is {data[name]!r}", where, f"only {value!r} can be converted")


def refuse_causal(model: EncoderConfig, where: str | Path) -> None:
    """Raises UserError for a causal model: the classes of transformers that we export to attend in both directions."""
    if model.attention == "causal":
        raise UserError("model.attention is causal", where, f"transformers' classes for model.kind {model.kind} would attend both ways")


@dataclasses.dataclass(frozen=True)
class Labels:
    """The classes of a head. names: in the order of their ids; notes: lines for the user about fields that the tensors contradict."""

    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def labels_of(data: Mapping[str, Any], classes: int, where: Path) -> Labels:
    """The classes of a head with so many rows in the file: the tensors decide how many there are, config.json only what they are called.

    The names are those of `id2label`, or without it of `label2id`; LABEL_0, LABEL_1 ... where these are missing or name another number of
    classes, as transformers does.
    Raises UserError, which names the field, for one that is not of its type or contradicts itself, where the tensors do not decide.
    """
    named, field = _named(data, where)
    default = tuple(f"LABEL_{i}" for i in range(classes))
    notes = _problem(data, classes, where)
    count = data.get("num_labels")
    if count is not None and (type(count) is not int or count < 1):
        raise UserError(f"num_labels is {count!r}", where, f"set it to {classes}, the rows of the classifier")
    if count not in (None, classes):
        notes += (f"num_labels is {count} and the classifier has {classes} rows: the tensors are followed",)
    if not named:
        return Labels(default, notes)
    if sorted(named) != list(range(classes)):
        what = f"{field} names {len(named)} classes, {min(named)} to {max(named)}, and the classifier has {classes} rows"
        return Labels(default, (*notes, f"{what}: they are called {default[0]}{f' to {default[-1]}' if classes > 1 else ''}"))
    labels = tuple(named[i] for i in range(classes))
    if len(set(labels)) < classes:
        raise UserError(f"{field} gives two classes one name", where, "give each its own, or remove the field")
    return Labels(labels, notes)


def _named(data: Mapping[str, Any], where: Path) -> tuple[dict[int, str], str]:
    """({id: name} of the classes, {} for none, the field that says it). Raises UserError for a field that is none, and for two that swap
    the names of one id."""
    forward, backward = data.get("id2label"), data.get("label2id")
    for field, value in (("id2label", forward), ("label2id", backward)):
        if value is not None and not isinstance(value, dict):
            raise UserError(f"{field} is {value!r}, which does not name the classes", where, "remove it")
    forward, backward = forward or {}, backward or {}
    for field, ids in (("id2label", forward), ("label2id", backward.values())):
        if wrong := [i for i in ids if not re.fullmatch(r"0|[1-9][0-9]{0,8}", str(i))]:
            raise UserError(f"{field} has the id {wrong[0]!r}", where, "number the classes 0, 1, 2 ...")
    named, back = {int(i): str(name) for i, name in forward.items()}, {name: int(i) for name, i in backward.items()}
    if named and set(named.values()) == set(back) and any(back[name] != i for i, name in named.items()):
        name = next(name for i, name in named.items() if back[name] != i)
        raise UserError(f"id2label and label2id give {name!r} two ids", where, "remove the one that is wrong")
    inverse = {i: name for name, i in back.items()}
    return (named, "id2label") if named or len(inverse) < len(back) else (inverse, "label2id")


def _problem(data: Mapping[str, Any], classes: int, where: Path) -> tuple[str, ...]:
    """Lines for the user about `problem_type`: here a regression has one number, where transformers may have several.

    Raises UserError for a value that transformers does not have.
    """
    kind = data.get("problem_type")
    if kind not in (None, *PROBLEMS):
        raise UserError(f"problem_type is {kind!r}", where, f"set it to {' or '.join(PROBLEMS)}, or remove it")
    if kind == "regression" and classes > 1:
        return (f"problem_type is {kind}: the logits are converted; here a softmax makes them probabilities of one class a text",)
    return ()


def labels_json(labels: Sequence[str]) -> dict[str, Any]:
    """The fields of transformers' config.json for the names of the classes."""
    return {"id2label": {str(i): name for i, name in enumerate(labels)}, "label2id": {name: i for i, name in enumerate(labels)}}
