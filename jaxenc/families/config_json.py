"""The fields of transformers' config.json that all families share: sizes, activations and the names of classes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxenc import config as configs
from jaxenc.errors import UserError
from jaxenc.families.contract import EncoderConfig, ModelConfig
from jaxenc.families.foreign import class_of

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
# More than any model has: a larger number comes from a damaged file, and memory would be allocated before the shapes are compared.
MOST_CLASSES, LARGEST_NUMBER = 1_000_000, (1 << 31) - 1


def sizes(
    data: Mapping[str, Any], fields: Mapping[str, str], activations: Mapping[str, str], where: Path, named: str = "hidden_act"
) -> dict[str, Any]:
    """{our field: value} of those of `fields` ({ours: theirs}) that `data` has, and of the activation.

    activations: {their value: ours}; named: their field of the activation. Raises UserError for an unknown activation and for a number
    that is too large for an array.
    """
    activation = data.get(named, "gelu")
    if not isinstance(activation, str) or activation not in activations:
        raise UserError(f"{where}: {named} is {activation!r}: {', '.join(activations)} can be converted")
    for name in (*fields.values(), "max_position_embeddings"):
        if isinstance(data.get(name), int | float) and data[name] > LARGEST_NUMBER:
            raise UserError(f"{where}: {name} is {data[name]}: no array is that large, fix it")
    return {**{ours: data[theirs] for ours, theirs in fields.items() if theirs in data}, "activation": activations[activation]}


def built(cls: type[M], values: Mapping[str, Any], where: Path) -> M:
    """The config of a model from its fields. Raises UserError, which begins with `where`, for an invalid value."""
    try:
        return configs.from_dict(cls, values, "model")
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def refuse_causal(model: EncoderConfig, where: str | Path) -> None:
    """Raises UserError for a causal model: the classes of transformers that we export to attend in both directions."""
    if model.attention == "causal":
        raise UserError(f"{where}: model.attention is causal: transformers' classes for model.kind {model.kind} would attend both ways")


def labels_of(data: Mapping[str, Any], classes: int, where: Path) -> tuple[str, ...]:
    """The names of the classes in order; LABEL_0, LABEL_1 ... where the config has only their number.

    A model of multiple choice has one output, the score of a choice, whatever id2label says. classes: their number in the tensors, for a
    config that does not have it. Raises UserError for names or a number that do not make sense.
    """
    if class_of(data).endswith("ForMultipleChoice"):
        return ("LABEL_0",)
    names = data.get("id2label")
    if names is None:
        count = data.get("num_labels", classes)
        if type(count) is not int or not 0 < count < MOST_CLASSES:
            raise UserError(f"{where}: num_labels is {count!r}: it takes a number from 1 to {MOST_CLASSES - 1}, fix it")
        return tuple(f"LABEL_{i}" for i in range(count))
    if not names or not isinstance(names, dict) or names.keys() != {str(i) for i in range(len(names))}:
        raise UserError(f"{where}: id2label does not name the classes 0, 1, 2 ...: fix it")
    labels = tuple(str(names[str(i)]) for i in range(len(names)))
    if len(set(labels)) < len(labels):
        raise UserError(f"{where}: id2label gives two classes one name: every class needs its own, fix it")
    return labels


def labels_json(labels: Sequence[str]) -> dict[str, Any]:
    """The fields of transformers' config.json for the names of the classes."""
    return {"id2label": {str(i): name for i, name in enumerate(labels)}, "label2id": {name: i for i, name in enumerate(labels)}}
