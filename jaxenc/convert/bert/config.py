"""BERT's and RoBERTa's config.json, as transformers writes it, from and to a Run."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxenc import config as configs
from jaxenc.convert.family import class_of
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.models.base import ModelConfig
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.run import Run

M = TypeVar("M", bound=ModelConfig)
CLASSES = {"bert": "Bert", "roberta": "Roberta"}
# Heads, the ending of the class that transformers has for them, and {our output: attributes of what it returns}. The first that fits is
# taken; a file may hold more than its class uses.
ENDINGS = (
    (("pooler", "classifier"), "ForSequenceClassification", {"classifier": ("logits",)}),
    (("tags",), "ForTokenClassification", {"tags": ("logits",)}),
    (("spans",), "ForQuestionAnswering", {"spans": ("start_logits", "end_logits")}),
    (("pooler", "mlm", "next_sentence"), "ForPreTraining", {"mlm": ("prediction_logits",), "next_sentence": ("seq_relationship_logits",)}),
    (("mlm",), "ForMaskedLM", {"mlm": ("logits",)}),
    (("pooler", "next_sentence"), "ForNextSentencePrediction", {"next_sentence": ("logits",)}),
    (("pooler",), "Model", {"pooled": ("pooler_output",)}),
    ((), "Model", {}),
)
FIELDS = {
    "vocab_size": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "feed_forward": "intermediate_size",
    "types": "type_vocab_size",
    "norm_epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "init_scale": "initializer_range",
}
# What the names of `hidden_act` mean in transformers 5.24, activations.py, and in google-research/bert, modeling.py.
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
# Of the names for one of our activations, the one that is written.
HIDDEN_ACT = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "tanh": "tanh"}
# More than any model has; what is larger is damaged, and would be reserved before the tensors are compared.
MOST_CLASSES, LARGEST_NUMBER = 1_000_000, (1 << 31) - 1


def column_of(data: Mapping[str, Any], where: Path) -> str:
    """The column of the table of names, bert or roberta, that a config.json follows. Raises UserError for what we do not compute."""
    only_encoders(data, where)
    return "bert" if data["model_type"] == "bert" else "roberta"


def only_encoders(data: Mapping[str, Any], where: Path) -> None:
    """Raises UserError for what BERT's relatives can be in transformers and are not here."""
    if data.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(f"{where}: position_embedding_type is {data['position_embedding_type']!r}: only 'absolute' can be converted")
    for flag in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
        if data.get(flag):
            raise UserError(f"{where}: {flag} is set: only encoders can be converted")


def model_of(data: Mapping[str, Any], column: str, where: Path) -> BertConfig:
    """The model that a config.json or google-research's bert_config.json describes; what it does not say has BERT-base's value.

    column: bert, roberta or google. Raises UserError, which begins with `where`, for an activation or a number that we do not have.
    """
    values = sizes(data, FIELDS, GOOGLE_ACTIVATIONS if column == "google" else ACTIVATIONS, where)
    rows, pad = data.get("max_position_embeddings", 512), data.get("pad_token_id", 1) if column == "roberta" else -1
    if type(rows) is not int or type(pad) is not int or pad < (0 if column == "roberta" else -1):
        raise UserError(f"{where}: max_position_embeddings is {rows!r} and pad_token_id {pad!r}: both are whole numbers, 0 at least")
    return built(BertConfig, {**values, "positions": rows - pad - 1, "first_position": pad + 1}, where)


def sizes(
    data: Mapping[str, Any], fields: Mapping[str, str], activations: Mapping[str, str], where: Path, named: str = "hidden_act"
) -> dict[str, Any]:
    """{our field: value} of what `data` has of `fields`, {ours: theirs}, and the activation.

    activations: {their name: ours}; named: the field that holds it. Raises UserError for another activation and for a number
    that is no array's.
    """
    activation = data.get(named, "gelu")
    if not isinstance(activation, str) or activation not in activations:
        raise UserError(f"{where}: {named} is {activation!r}: {', '.join(activations)} can be converted")
    for name in (*fields.values(), "max_position_embeddings"):
        if isinstance(data.get(name), int | float) and data[name] > LARGEST_NUMBER:
            raise UserError(f"{where}: {name} is {data[name]}: no array is that large, mend it")
    return {**{ours: data[theirs] for ours, theirs in fields.items() if theirs in data}, "activation": activations[activation]}


def built(cls: type[M], values: Mapping[str, Any], where: Path) -> M:
    """The config of a model from its fields. Raises UserError, which begins with `where`, for a number that it does not take."""
    try:
        return configs.from_dict(cls, values, "model")
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def labels_of(data: Mapping[str, Any], classes: int, where: Path) -> tuple[str, ...]:
    """The names of the classes, by their numbers; LABEL_0, LABEL_1 ... where only their number is told.

    A model of multiple choice gives each text one number, which is compared with those of the other choices, whatever id2label says.
    classes: that of the tensors, for a config that tells nothing.
    """
    if class_of(data).endswith("ForMultipleChoice"):
        return ("LABEL_0",)
    names = data.get("id2label")
    if names is None:
        count = data.get("num_labels", classes)
        if type(count) is not int or not 0 < count < MOST_CLASSES:
            raise UserError(f"{where}: num_labels is {count!r}: it takes a number from 1 to {MOST_CLASSES - 1}, mend it")
        return tuple(f"LABEL_{i}" for i in range(count))
    if not names or not isinstance(names, dict) or names.keys() != {str(i) for i in range(len(names))}:
        raise UserError(f"{where}: id2label does not name the classes 0, 1, 2 ...: mend it")
    labels = tuple(str(names[str(i)]) for i in range(len(names)))
    if len(set(labels)) < len(labels):
        raise UserError(f"{where}: id2label gives two classes one name: every class needs its own, mend it")
    return labels


def run_of(model: BertConfig, heads: Collection[str], labels: tuple[str, ...]) -> Run:
    """A Run for a converted model: its objective is the one that trains these heads, everything else has its default.

    labels: of `classifier` or `tags`, () without them.
    """
    pretrained: dict[frozenset[str], ObjectiveConfig] = {
        frozenset({"mlm"}): MlmConfig(),
        frozenset({"pooler", "mlm", "next_sentence"}): PairConfig(),
    }
    objective = pretrained.get(frozenset(heads)) or HeadsConfig(tuple(heads), labels)
    rows = "pairs" if objective.kind == PairConfig.kind else Run().data.rows
    return dataclasses.replace(Run(objective, model), data=dataclasses.replace(Run().data, rows=rows, length=model.positions))


def refuse(run: Run, heads: Collection[str], column: str, where: str | Path) -> None:
    """Raises UserError where transformers has no such model, or computes another one from the same numbers."""
    model, objective = run.model, run.objective
    if column == "roberta" and "mlm" in heads and model.activation != "gelu_erf":
        raise UserError(f"{where}: model.activation is {model.activation}: transformers' RoBERTa has gelu_erf in its head whatever is set")
    if column == "roberta" and "next_sentence" in heads:
        raise UserError(f"{where}: transformers' RoBERTa has no next-sentence head: train one with model.first_position 0 for that")
    if "pooler" in heads and isinstance(objective, HeadsConfig) and objective.pooler_activation != "tanh":
        raise UserError(f"{where}: objective.pooler_activation is {objective.pooler_activation}: transformers' BERT and RoBERTa have tanh")
    if "rtd" in heads:
        raise UserError(f"{where}: transformers' BERT and RoBERTa have no replaced-token head: an ELECTRA has one")
    if {"classifier", "tags"} <= set(heads):
        raise UserError(f"{where}: transformers has no model that classifies texts and tokens: keep one of the two heads")


def config_json(run: Run, heads: Collection[str], vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """What transformers' AutoConfig reads of a model of ours, and {our output: attributes} of the class that it names.

    vocabulary: the tokenizer's, None without one.
    Raises UserError where positions do not start as in BERT (0) or RoBERTa (after the pad id).
    """
    model = run.model
    pad = vocabulary.pad if vocabulary else max(model.first_position - 1, 0)
    if model.first_position not in (0, pad + 1):
        raise UserError(f"model.first_position is {model.first_position}: transformers has 0 (BERT) and {pad + 1}, one after the pad id")
    column = "roberta" if model.first_position else "bert"
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(heads))
    data = {
        "architectures": [CLASSES[column] + ending],
        "model_type": column,
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "type_vocab_size": max(model.types, 1),
        "hidden_act": HIDDEN_ACT[model.activation],
        "max_position_embeddings": model.positions + model.first_position,
        "pad_token_id": pad,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    }
    if column == "roberta" and vocabulary:
        data |= {"bos_token_id": vocabulary.cls, "eos_token_id": vocabulary.sep}
    if isinstance(run.objective, HeadsConfig) and run.objective.labels:
        data |= labels_json(run.objective.labels)
    return data, outputs


def labels_json(labels: Sequence[str]) -> dict[str, Any]:
    """The names of the classes as transformers' config.json has them."""
    return {"id2label": {str(i): name for i, name in enumerate(labels)}, "label2id": {name: i for i, name in enumerate(labels)}}
