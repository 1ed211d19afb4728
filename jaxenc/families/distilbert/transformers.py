"""Reads and writes DistilBERT in folders of transformers."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.distilbert import names
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.foreign import Export, Import, Structure, Transformers, Weights, check_layers, class_of
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import ON_TEXTS

# As `bert.transformers.ENDINGS`.
ENDINGS = (
    *fine_tuned.endings("pooler"),
    (("spans",), "ForQuestionAnswering", {"spans": ("start_logits", "end_logits")}),
    (("mlm",), "ForMaskedLM", {"mlm": ("logits",)}),
    ((), "Model", {}),
)
# The dropout rates on the inputs of heads: {field: heads}.
RATES = {"seq_classif_dropout": ON_TEXTS, "qa_dropout": ("spans",)}
FIELDS = {
    "vocab_size": "vocab_size",
    "width": "dim",
    "layers": "n_layers",
    "heads": "n_heads",
    "feed_forward": "hidden_dim",
    "positions": "max_position_embeddings",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "init_scale": "initializer_range",
}
# transformers has no field for it (modeling_distilbert.py).
NORM_EPSILON = 1e-12
# The activation of `pre_classifier`, the dense layer before the classes of a text, which is read as a pooler.
POOLER = "relu"


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model in a folder of transformers, with the heads whose tensors it holds. Raises UserError for what cannot be converted."""
    found = names.heads_of(tensors, class_of(config))
    heads, labels = fine_tuned.read(config, found, lambda head: names.classes_of(tensors, head), where)
    model, base = model_of(config, where), names.file_base(tensors)
    check_layers(model.layers, tensors, where)
    structure = Structure(model, heads, labels.names, POOLER)
    structure = dataclasses.replace(structure, dropout=fine_tuned.rates(config, RATES, structure, where))
    return Import(structure, tensors, names.entries(model, heads, base), names.skipped(base), notes=labels.notes)


def write(ours: Weights) -> Export:
    """The model in the format of transformers; without heads its tensors have no prefix, as in DistilBertModel. Raises UserError as
    `refuse`."""
    structure = ours.structure
    refuse(structure, "this model")
    config, outputs = described(structure, ours.vocabulary)
    return Export(config, names.entries(structure.model, structure.heads, names.BASE if structure.heads else ""), ours.params, outputs)


def model_of(data: Mapping[str, Any], where: Path) -> DistilbertConfig:
    """The model of a config.json. Raises UserError, which begins with `where`, for what is not computed here. Positions that began as
    sinusoids (`sinusoidal_pos_embds`) are a table like any other in the file."""
    values = config_json.sizes(data, FIELDS, config_json.ACTIVATIONS, where, "activation")
    return config_json.built(DistilbertConfig, values, where, FIELDS)


def refuse(structure: Structure, where: str | Path) -> None:
    """Raises UserError where transformers has no such model, or computes something else from the same parameters."""
    model, heads = structure.model, set(structure.heads)
    config_json.refuse_causal(model, where)
    if model.norm_epsilon != NORM_EPSILON:
        raise UserError(f"model.norm_epsilon is {model.norm_epsilon}", where, f"transformers' DistilBERT has {NORM_EPSILON}")
    if ("pooler" in heads) != bool(heads & set(ON_TEXTS)):
        raise UserError(
            "transformers' DistilBERT has no pooler but that of its classifier", where, "keep the pooler and the classifier, or neither"
        )
    if "pooler" in heads and structure.pooler_activation != POOLER:
        activation = structure.pooler_activation
        raise UserError(f"objective.pooler_activation is {activation}", where, f"transformers' DistilBERT has {POOLER} in its classifier")
    fine_tuned.refuse(heads, where)


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """(the config.json of a model for AutoConfig of transformers, {our output: attributes} of the class that it names).

    vocabulary: the tokenizer's, None without one.
    """
    model = structure.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(structure.heads))
    data = {
        "architectures": [f"DistilBert{ending}"],
        "model_type": "distilbert",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "activation": config_json.HIDDEN_ACT[model.activation],
        "sinusoidal_pos_embds": False,
        "pad_token_id": vocabulary.pad if vocabulary else 0,
        "tie_word_embeddings": True,
    }
    return data | fine_tuned.rates_json(RATES, structure) | fine_tuned.described(structure), outputs


TRANSFORMERS = Transformers(("distilbert",), read, write)
