"""BERT's and RoBERTa's config.json, as transformers writes it, from and to a Run."""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc import config as configs
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.run import Run

# model_type: the columns of the table of names that its files follow.
FAMILIES = {"bert": "bert", "roberta": "roberta", "xlm-roberta": "roberta", "camembert": "roberta"}
CLASSES = {"bert": "Bert", "roberta": "Roberta"}
# Heads of the class that transformers has for them, the first that fits; a file may hold more than its class uses.
ARCHITECTURES = (
    (("pooler", "classifier"), "ForSequenceClassification"),
    (("tags",), "ForTokenClassification"),
    (("spans",), "ForQuestionAnswering"),
    (("pooler", "mlm", "next_sentence"), "ForPreTraining"),
    (("mlm",), "ForMaskedLM"),
    (("pooler", "next_sentence"), "ForNextSentencePrediction"),
    ((), "Model"),
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
# What the names mean in transformers 5.24, activations.py. In google-research/bert `gelu` is the tanh form.
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
MOST_CLASSES = 1_000_000
HIDDEN_ACT = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "tanh": "tanh"}


def family_of(data: Mapping[str, Any], where: Path) -> str:
    """bert or roberta. Raises UserError for another model, and for variants of these two that we do not compute."""
    # Folders from before 2020 name only the class, and those from before other models than BERT not even that.
    named = architecture_of(data) or "BertModel"
    kind = data.get("model_type") or next((kind for kind in FAMILIES if named.lower().startswith(kind)), named)
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise UserError(f"{where}: its model_type is {kind!r}: {', '.join(FAMILIES)} can be converted")
    if data.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(f"{where}: position_embedding_type is {data['position_embedding_type']!r}: only 'absolute' can be converted")
    for flag in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
        if data.get(flag):
            raise UserError(f"{where}: {flag} is set: only encoders can be converted")
    return FAMILIES[kind]


def architecture_of(data: Mapping[str, Any]) -> str:
    """The class that saved the folder, such as BertForMaskedLM, or ''."""
    names = data.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def model_of(data: Mapping[str, Any], family: str, where: Path) -> BertConfig:
    """The model that a config.json or google-research's bert_config.json describes; what it does not say has BERT-base's value.

    family: bert, roberta or google. Raises UserError, which begins with `where`, for an activation or a number that we do not have.
    """
    known = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh"} if family == "google" else ACTIVATIONS
    activation = data.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in known:
        raise UserError(f"{where}: hidden_act is {activation!r}: {', '.join(known)} can be converted")
    rows, pad = data.get("max_position_embeddings", 512), data.get("pad_token_id", 1) if family == "roberta" else -1
    if type(rows) is not int or type(pad) is not int or pad < (0 if family == "roberta" else -1):
        raise UserError(f"{where}: max_position_embeddings is {rows!r} and pad_token_id {pad!r}: both are whole numbers, 0 at least")
    sizes = {name: data.get(name) for name in (*FIELDS.values(), "max_position_embeddings")}
    if huge := [name for name, size in sizes.items() if isinstance(size, int | float) and size >= 1 << 31]:
        raise UserError(f"{where}: {huge[0]} is {data[huge[0]]}: no array is that large, mend it")
    values = {ours: data[theirs] for ours, theirs in FIELDS.items() if theirs in data}
    values |= {"activation": known[activation], "positions": rows - pad - 1, "first_position": pad + 1}
    try:
        return configs.from_dict(BertConfig, values, "model")
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def labels_of(data: Mapping[str, Any], where: Path) -> tuple[str, ...]:
    """The names of the classes, by their numbers; LABEL_0, LABEL_1 ... where only their number is told, 2 where nothing is."""
    names = data.get("id2label")
    if names is None:
        count = data.get("num_labels", 2)
        names = {str(i): f"LABEL_{i}" for i in range(count)} if type(count) is int and count < MOST_CLASSES else count
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
    return dataclasses.replace(Run(objective, model), data=dataclasses.replace(Run().data, length=model.positions))


def check(model: BertConfig, heads: Collection[str], family: str, where: Path) -> None:
    """Raises UserError where transformers has no such model, or computes another one from the same numbers."""
    if family == "roberta" and "mlm" in heads and model.activation != "gelu_erf":
        raise UserError(f"{where}: model.activation is {model.activation}: transformers' RoBERTa has gelu_erf in its head whatever is set")
    if family == "roberta" and "next_sentence" in heads:
        raise UserError(f"{where}: transformers' RoBERTa has no next-sentence head: train one with model.first_position 0 for that")
    if {"classifier", "tags"} <= set(heads):
        raise UserError(f"{where}: transformers has no model that classifies texts and tokens: keep one of the two heads")


def config_json(run: Run, heads: Collection[str], vocabulary: Vocabulary | None, dtype: str) -> dict[str, Any]:
    """What transformers' AutoConfig reads of a model of ours.

    vocabulary: the tokenizer's, None without one. dtype: of the weights, such as float32.
    Raises UserError where positions do not start as in BERT (0) or RoBERTa (after the pad id).
    """
    model = run.model
    pad = vocabulary.pad if vocabulary else max(model.first_position - 1, 0)
    if model.first_position not in (0, pad + 1):
        raise UserError(f"model.first_position is {model.first_position}: transformers has 0 (BERT) and {pad + 1}, one after the pad id")
    family = "roberta" if model.first_position else "bert"
    fitting = next(name for needed, name in ARCHITECTURES if set(needed) <= set(heads))
    data = {
        "architectures": [CLASSES[family] + fitting],
        "model_type": family,
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "type_vocab_size": max(model.types, 1),
        "hidden_act": HIDDEN_ACT[model.activation],
        "max_position_embeddings": model.positions + model.first_position,
        "pad_token_id": pad,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
        "dtype": dtype,
    }
    if family == "roberta" and vocabulary:
        data |= {"bos_token_id": vocabulary.cls, "eos_token_id": vocabulary.sep}
    if isinstance(run.objective, HeadsConfig) and run.objective.labels:
        labels = run.objective.labels
        data |= {"id2label": {str(i): name for i, name in enumerate(labels)}, "label2id": {name: i for i, name in enumerate(labels)}}
    return data
