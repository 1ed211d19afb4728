"""ALBERT in folders of transformers, in and out."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import tree
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.albert import names
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.albert.names import AlbertFile
from jaxenc.families.foreign import Export, Import, Structure, Transformers, Weights, check_layers, class_of
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import ON_TEXTS
from jaxenc.heads.pooler import TANH

# Heads, the ending of the class that transformers has for them, and {our output: attributes of what it returns}. The first that fits is
# taken; a file may hold more than its class uses.
ENDINGS = (
    *fine_tuned.endings("pooler"),
    (("spans",), "ForQuestionAnswering", {"spans": ("start_logits", "end_logits")}),
    (("pooler", "mlm", "sentence_order"), "ForPreTraining", {"mlm": ("prediction_logits",), "sentence_order": ("sop_logits",)}),
    (("mlm",), "ForMaskedLM", {"mlm": ("logits",)}),
    (("pooler",), "Model", {"pooled": ("pooler_output",)}),
    ((), "Model", {}),
)
# The dropout rates on the inputs of heads: {field: heads}.
RATES = {"classifier_dropout_prob": (*ON_TEXTS, "tags")}
FIELDS = {
    "vocab_size": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "groups": "num_hidden_groups",
    "heads": "num_attention_heads",
    "feed_forward": "intermediate_size",
    "embedding": "embedding_size",
    "positions": "max_position_embeddings",
    "types": "type_vocab_size",
    "norm_epsilon": "layer_norm_eps",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "init_scale": "initializer_range",
}
# What transformers takes for fields that a config.json does not name: those of ALBERT-xxlarge.
DEFAULTS = {"width": 4096, "heads": 64, "feed_forward": 16384}


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a folder of transformers; its heads are those whose tensors are there."""
    file = names.file_of(tensors)
    found = names.heads_of(tensors, file, class_of(config))
    heads, labels = fine_tuned.read(config, found, lambda head: names.classes_of(tensors, head, file), where)
    structure = Structure(model_of(config, DEFAULTS, config_json.ACTIVATIONS, where), heads, labels.names)
    structure = dataclasses.replace(structure, dropout=fine_tuned.rates(config, RATES, structure, where))
    return imported(structure, file, tensors, where, labels.notes)


def imported(structure: Structure, file: AlbertFile, tensors: Mapping[str, Tensor], where: Path, notes: tuple[str, ...] = ()) -> Import:
    """The model of a file of transformers or of google-research/albert. Raises UserError for more groups of layers than it has tensors."""
    refuse(structure, where)
    check_layers(structure.model.groups, tensors, where)
    return Import(structure, tensors, names.entries(structure.model, structure.heads, file), names.skipped(file), notes=notes)


def write(ours: Weights) -> Export:
    """The model as transformers has it; an encoder without heads as AlbertModel saves itself, names bare."""
    model, heads, params = ours.structure.model, ours.structure.heads, ours.params
    refuse(ours.structure, "this model")
    config, outputs = described(ours.structure, ours.vocabulary)
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.embedding), np.float32)}}})
    file = AlbertFile("albert." if set(heads) - {"pooler"} else "")
    return Export(config, names.entries(model, heads, file), params, outputs)


def model_of(data: Mapping[str, Any], defaults: Mapping[str, int], activations: Mapping[str, str], where: Path) -> AlbertConfig:
    """The model of a config.json or an albert_config.json. defaults: of fields that it does not name; activations: {their name: ours}.

    Raises UserError, which begins with `where`, for what we do not compute.
    """
    if data.get("inner_group_num", 1) != 1:
        raise UserError(f"inner_group_num is {data['inner_group_num']!r}", where, "only 1 can be converted")
    if data.get("position_embedding_type", "absolute") != "absolute":
        raise UserError(f"position_embedding_type is {data['position_embedding_type']!r}", where, "only 'absolute' can be converted")
    return config_json.built(AlbertConfig, {**defaults, **config_json.sizes(data, FIELDS, activations, where)}, where, FIELDS)


def refuse(structure: Structure, where: str | Path) -> None:
    """Raises UserError where transformers has no such model, or computes another one from the same numbers."""
    config_json.refuse_causal(structure.model, where)
    if "pooler" in structure.heads and structure.pooler_activation != TANH:
        raise UserError(f"objective.pooler_activation is {structure.pooler_activation}", where, "transformers' ALBERT has tanh")
    fine_tuned.refuse(structure.heads, where)


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """What transformers' AutoConfig reads of a model of ours, and {our output: attributes} of the class that it names. vocabulary: the
    tokenizer's, None without one."""
    model = structure.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(structure.heads))
    data = {
        "architectures": [f"Albert{ending}"],
        "model_type": "albert",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "type_vocab_size": max(model.types, 1),
        "inner_group_num": 1,
        "hidden_act": config_json.HIDDEN_ACT[model.activation],
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    }
    data["pad_token_id"] = vocabulary.pad if vocabulary else 0
    if vocabulary:
        ends = (vocabulary.cls, vocabulary.sep) if vocabulary.frames else (None, None)
        data |= {"bos_token_id": ends[0], "eos_token_id": ends[1]}
    return data | fine_tuned.rates_json(RATES, structure) | fine_tuned.described(structure), outputs


TRANSFORMERS = Transformers(("albert",), read, write)
