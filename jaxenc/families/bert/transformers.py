"""Reads and writes BERT and RoBERTa in folders of transformers."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import tree
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.bert import names
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.bert.names import BertFile
from jaxenc.families.foreign import Export, Import, Structure, Transformers, Weights, check_layers, class_of
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import ON_TEXTS
from jaxenc.heads.pooler import TANH

CLASSES = {"bert": "Bert", "roberta": "Roberta"}
# (heads, ending of the class of transformers with these heads, {our output: attributes of what that class returns}). The first entry whose
# heads a model has is used; a file may hold more heads than its class uses.
ENDINGS = (
    *fine_tuned.endings("pooler"),
    (("spans",), "ForQuestionAnswering", {"spans": ("start_logits", "end_logits")}),
    (("pooler", "mlm", "next_sentence"), "ForPreTraining", {"mlm": ("prediction_logits",), "next_sentence": ("seq_relationship_logits",)}),
    (("mlm",), "ForMaskedLM", {"mlm": ("logits",)}),
    (("pooler", "next_sentence"), "ForNextSentencePrediction", {"next_sentence": ("logits",)}),
    (("pooler",), "Model", {"pooled": ("pooler_output",)}),
    ((), "Model", {}),
)
# The dropout rates on the inputs of heads: {field: heads}.
RATES = {"classifier_dropout": (*ON_TEXTS, "tags")}
# RoBERTa's classification head has it twice.
ROBERTA_RATES = {"classifier_dropout": (*ON_TEXTS, "tags", "pooler")}
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


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model in a folder of transformers, with the heads whose tensors it holds. Raises UserError for what cannot be converted."""
    column = column_of(config, where)
    file = names.file_of(column, tensors)
    heads = names.heads_of(tensors, file, class_of(config))
    heads, labels = fine_tuned.read(config, heads, lambda head: names.classes_of(tensors, head, file), where)
    structure = Structure(model_of(config, column, where), heads, labels.names)
    refuse(structure, column, where)
    rates = ROBERTA_RATES if names.classifies(heads) and column == "roberta" else RATES
    structure = dataclasses.replace(structure, dropout=fine_tuned.rates(config, rates, structure, where))
    return imported(structure, file, tensors, where, labels.notes)


def write(ours: Weights) -> Export:
    """The model in the format of transformers; without heads its tensors have no prefix, as in BertModel and RobertaModel. Raises UserError
    as `refuse` and `described`."""
    config, outputs = described(ours.structure, ours.vocabulary)
    column, model, heads, params = config["model_type"], ours.structure.model, ours.structure.heads, ours.params
    refuse(ours.structure, column, "this model")
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.width), np.float32)}}})
    file = BertFile(column, f"{column}." if set(heads) - {"pooler"} else "")
    return Export(config, names.entries(model, heads, file), params, outputs)


def imported(structure: Structure, file: BertFile, tensors: Mapping[str, Tensor], where: Path, notes: tuple[str, ...] = ()) -> Import:
    """The model of a file of transformers or of google-research/bert. Raises UserError for more layers than it has tensors."""
    check_layers(structure.model.layers, tensors, where)
    table = names.entries(structure.model, structure.heads, file)
    return Import(structure, tensors, table, names.skipped(file, structure.heads), notes=notes)


def column_of(data: Mapping[str, Any], where: Path) -> str:
    """The column of the name table, bert or roberta, for a config.json. Raises UserError as `only_encoders`."""
    only_encoders(data, where)
    return "bert" if data["model_type"] == "bert" else "roberta"


def only_encoders(data: Mapping[str, Any], where: Path) -> None:
    """Raises UserError for settings of transformers' BERT classes that are not implemented here: decoders and relative positions."""
    if data.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(f"position_embedding_type is {data['position_embedding_type']!r}", where, "only 'absolute' can be converted")
    for flag in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
        if data.get(flag):
            raise UserError(f"{flag} is set", where, "only encoders can be converted")


def model_of(data: Mapping[str, Any], column: str, where: Path) -> BertConfig:
    """The model that a config.json or google-research's bert_config.json describes; missing fields have BERT-base's values.

    column: bert, roberta or google. Raises UserError, which begins with `where`, for an unknown activation or an invalid number.
    """
    values = config_json.sizes(data, FIELDS, config_json.GOOGLE_ACTIVATIONS if column == "google" else config_json.ACTIVATIONS, where)
    rows, pad = data.get("max_position_embeddings", 512), data.get("pad_token_id", 1) if column == "roberta" else -1
    if type(rows) is not int or type(pad) is not int or pad < (0 if column == "roberta" else -1):
        raise UserError(f"max_position_embeddings is {rows!r} and pad_token_id {pad!r}", where, "both are whole numbers, 0 at least")
    return config_json.built(BertConfig, {**values, "positions": rows - pad - 1, "first_position": pad + 1}, where, FIELDS)


def refuse(structure: Structure, column: str, where: str | Path) -> None:
    """Raises UserError where transformers has no such model, or computes something else from the same parameters."""
    model, heads = structure.model, structure.heads
    config_json.refuse_causal(model, where)
    if column == "roberta" and "mlm" in heads and model.activation != "gelu_erf":
        raise UserError(f"model.activation is {model.activation}", where, "transformers' RoBERTa has gelu_erf in its head whatever is set")
    if column == "roberta" and "next_sentence" in heads:
        raise UserError(
            "transformers' RoBERTa has no next-sentence head", where, "leave that head out, or train a model with model.first_position 0"
        )
    if "pooler" in heads and structure.pooler_activation != TANH:
        raise UserError(f"objective.pooler_activation is {structure.pooler_activation}", where, "transformers' BERT and RoBERTa have tanh")
    if "rtd" in heads:
        raise UserError("transformers' BERT and RoBERTa have no replaced-token head", where, "leave that head out, or train an ELECTRA")
    fine_tuned.refuse(heads, where)


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """(the config.json of a model for AutoConfig of transformers, {our output: attributes} of the class that it names).

    vocabulary: the tokenizer's, None without one.
    Raises UserError where positions do not start as in BERT (0) or RoBERTa (after the pad id).
    """
    model = structure.model
    pad = vocabulary.pad if vocabulary else max(model.first_position - 1, 0)
    if model.first_position not in (0, pad + 1):
        raise UserError(
            f"model.first_position is {model.first_position}", fix=f"transformers has 0 (BERT) and {pad + 1}, one after the pad id"
        )
    column = "roberta" if model.first_position else "bert"
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(structure.heads))
    data = {
        "architectures": [CLASSES[column] + ending],
        "model_type": column,
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "type_vocab_size": max(model.types, 1),
        "hidden_act": config_json.HIDDEN_ACT[model.activation],
        "max_position_embeddings": model.positions + model.first_position,
        "pad_token_id": pad,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    }
    if column == "roberta" and vocabulary:
        ends = (vocabulary.cls, vocabulary.sep) if vocabulary.frames else (None, None)
        data |= {"bos_token_id": ends[0], "eos_token_id": ends[1]}
    return data | fine_tuned.rates_json(RATES, structure) | fine_tuned.described(structure), outputs


TRANSFORMERS = Transformers(("bert", "roberta", "xlm-roberta", "camembert"), read, write)
