"""Reads and writes ELECTRA in folders of transformers.

In transformers a generator and a discriminator are two models. A run that holds one of them has an ElectraConfig with the same sizes for
both, and its heads decide which of the two it is (`ElectraConfig.encoder`). `two_models.py` joins the two models.
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import tree
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.bert import transformers as berts
from jaxenc.families.electra import names, two_models
from jaxenc.families.electra.model import NETWORKS, ElectraConfig
from jaxenc.families.electra.names import ElectraFile
from jaxenc.families.foreign import Export, Folders, Import, Structure, Transformers, Weights, check_layers, class_of
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import ON_TEXTS
from jaxenc.heads.pooler import TANH

# As `bert.transformers.ENDINGS`.
ENDINGS = (
    (("mlm",), "ForMaskedLM", {"mlm": ("logits",)}),
    *fine_tuned.endings("pooler"),
    (("spans",), "ForQuestionAnswering", {"spans": ("start_logits", "end_logits")}),
    (("rtd",), "ForPreTraining", {"rtd": ("logits",)}),
    ((), "Model", {}),
)
# The dropout rates on the inputs of heads: {field: heads}. ElectraForMultipleChoice has a field of its own.
RATES = {"classifier_dropout": ("classifier", "regressor", "multilabel", "tags", "pooler")}
CHOICE_RATES = {"summary_last_dropout": ("choice",)}
FIELDS = {**berts.FIELDS, "embedding": "embedding_size"}
# The defaults of transformers for fields that a config.json leaves out: those of ELECTRA-small.
DEFAULTS = {"width": 256, "heads": 4, "feed_forward": 1024, "embedding": 128}
# The activation of the classification head.
POOLER = "gelu_erf"
# The vector that ElectraForMultipleChoice reads, as computed here, which is also the default of transformers.
SUMMARY = {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"}


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The network in a folder of transformers, with the heads whose tensors it holds. Raises UserError for what cannot be converted."""
    heads, file = names.heads_of(tensors, class_of(config)), names.file_of(tensors)
    if "choice" in heads:
        config_json.only(SUMMARY, config, where)
    if "mlm" in heads and len(heads) > 1:
        raise UserError(
            "its tensors are heads of a generator and of a discriminator", where, "keep the heads of one of them, a folder for each network"
        )
    heads, labels = fine_tuned.read(config, heads, lambda head: names.classes_of(tensors, head), where)
    model = model_of(config, where)
    structure = Structure(model, heads, labels.names, POOLER if "pooler" in heads else TANH)
    refuse(structure, where)
    structure = dataclasses.replace(structure, dropout=fine_tuned.rates(config, _rates(heads), structure, where))
    check_layers(model.layers, tensors, where)
    return Import(structure, tensors, names.entries(model, _network(heads), heads, file), names.skipped(file), notes=labels.notes)


def write(ours: Weights) -> Export:
    """One network of a pair in the format of transformers; without heads its tensors have no prefix, as in ElectraModel. Raises UserError
    as `refuse`."""
    heads, params = ours.structure.heads, ours.params
    network = _network(heads)
    model = two_models.alone(ours.structure.model, network)
    structure = dataclasses.replace(ours.structure, model=model)
    refuse(structure, "this model")
    config, outputs = described(structure, ours.vocabulary)
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.embedding), np.float32)}}})
    base = "electra." if heads else ""
    return Export(config, names.entries(model, network, heads, ElectraFile(base, base)), params, outputs)


def _rates(heads: Collection[str]) -> Mapping[str, Collection[str]]:
    return CHOICE_RATES if "choice" in heads else RATES


def _network(heads: Collection[str]) -> str:
    return "generator" if "mlm" in heads else "discriminator"


def model_of(data: Mapping[str, Any], where: Path) -> ElectraConfig:
    """The model of a config.json. Raises UserError, which begins with `where`, for a setting that is not implemented here."""
    berts.only_encoders(data, where)
    values = DEFAULTS | config_json.sizes(data, FIELDS, config_json.ACTIVATIONS, where)
    if "max_position_embeddings" in data:
        values["positions"] = data["max_position_embeddings"]
    return two_models.alone(
        config_json.built(ElectraConfig, values, where, {**FIELDS, "positions": "max_position_embeddings"}), "discriminator"
    )


def refuse(structure: Structure, where: str | Path) -> None:
    """Raises UserError where transformers has no such model, or computes something else from the same parameters."""
    model, heads = structure.model, structure.heads
    config_json.refuse_causal(model, where)
    if "mlm" in heads and model.activation != "gelu_erf":
        raise UserError(f"model.activation is {model.activation}", where, "transformers' ELECTRA has gelu_erf in the generator's head")
    tuned = set(heads) & set(ON_TEXTS)
    if "first_token" in heads and tuned:
        what = (
            f"{' and '.join(sorted(tuned))} reads the first token itself, where transformers' ELECTRA has a dense layer and GELU before it"
        )
        raise UserError(
            what, where, f"to export it, train the head pooler with objective.pooler_activation={POOLER} instead of first_token"
        )
    fine_tuned.refuse(heads, where, apart=() if "choice" in heads else ("tags",))
    if "next_sentence" in heads or ("pooler" in heads) != bool(tuned):
        raise UserError(
            "transformers' ELECTRA has no pooler but that of its classifier, and no next-sentence head",
            where,
            "leave out the head, or export another way: `jaxenc export --help`",
        )
    if "joint_spans" in heads:
        what = "transformers' ELECTRA predicts both ends of an answer independently and has no head joint_spans"
        raise UserError(what, where, "leave out the head, or export another way: `jaxenc export --help`")
    if "pooler" in heads and structure.pooler_activation != POOLER:
        activation = structure.pooler_activation
        raise UserError(f"objective.pooler_activation is {activation}", where, "transformers' ELECTRA has gelu_erf in its classifier")


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """(the config.json of one network for AutoConfig of transformers, {our output: attributes} of the class that it names)."""
    model = structure.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(structure.heads))
    data = {
        "architectures": [f"Electra{ending}"],
        "model_type": "electra",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "type_vocab_size": max(model.types, 1),
        "hidden_act": config_json.HIDDEN_ACT[model.activation],
        "max_position_embeddings": model.positions,
        "pad_token_id": vocabulary.pad if vocabulary else 0,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    }
    summary = SUMMARY if "choice" in structure.heads else {}
    return data | summary | fine_tuned.rates_json(_rates(structure.heads), structure) | fine_tuned.described(structure), outputs


TRANSFORMERS = Transformers(("electra",), read, write, Folders(NETWORKS, two_models.split, two_models.join))
