"""Reads and writes GPT in folders of transformers.

transformers drops the sum of the token and position vectors with `embd_pdrop` where the original and this model drop the tables: the rate
is the same number (`model.table_dropout`), and no output without dropout depends on it.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.foreign import Export, Import, Structure, Transformers, Weights, check_layers, class_of
from jaxenc.families.gpt import names
from jaxenc.families.gpt.model import GptConfig
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import ON_TEXTS

# As `bert.transformers.ENDINGS`.
ENDINGS = (
    (("last_token", "choice"), "DoubleHeadsModel", {"next_token": ("logits",), "choice": ("mc_logits",)}),
    (("next_token",), "LMHeadModel", {"next_token": ("logits",)}),
    ((), "Model", {}),
)
FIELDS = {
    "vocab_size": "vocab_size",
    "width": "n_embd",
    "layers": "n_layer",
    "heads": "n_head",
    "positions": "n_positions",
    "norm_epsilon": "layer_norm_epsilon",
    "dropout": "resid_pdrop",
    "table_dropout": "embd_pdrop",
    "attention_dropout": "attn_pdrop",
    "init_scale": "initializer_range",
}
# Our activation for each value of `afn` in transformers 5.24 (modeling_openai.py), whose gelu is the tanh form.
ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}
# The dropout rates on the inputs of heads: {field: heads}.
RATES = {"summary_first_dropout": ("choice",)}
# The head of OpenAIGPTDoubleHeadsModel as computed here, which is also the default of transformers.
SUMMARY = {"summary_type": "cls_index", "summary_use_proj": True, "summary_proj_to_labels": True, "summary_activation": None}


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model in a folder of transformers, with the heads whose tensors it holds or that its class has. Raises UserError for what cannot
    be converted."""
    if class_of(config).endswith("ForSequenceClassification"):
        raise UserError(class_of(config), where, "OpenAIGPTModel, its LMHeadModel and its DoubleHeadsModel can be converted")
    heads = names.heads_of(tensors, class_of(config))
    if "choice" in heads:
        config_json.only(SUMMARY, config, where)
    model, base = model_of(config, where), names.file_base(tensors)
    check_layers(model.layers, tensors, where)
    structure = Structure(model, heads)
    structure = dataclasses.replace(structure, dropout=fine_tuned.rates(config, RATES, structure, where))
    return Import(structure, tensors, names.entries(model, heads, base), names.skipped(base))


def write(ours: Weights) -> Export:
    """The model in the format of transformers; without heads its tensors have no prefix, as in OpenAIGPTModel. Raises UserError as
    `refuse`."""
    structure = ours.structure
    refuse(structure, "this model")
    config, outputs = described(structure, ours.vocabulary)
    table = names.entries(structure.model, structure.heads, names.BASE if structure.heads else "")
    return Export(config, table, ours.params, outputs, last_token="mc_token_ids" if "choice" in outputs else "")


def model_of(data: Mapping[str, Any], where: Path) -> GptConfig:
    """The model of a config.json; its feed-forward layers are four times as wide as it. Raises UserError, which begins with `where`, for
    what is not computed here."""
    values = config_json.sizes(data, FIELDS, ACTIVATIONS, where, "afn")
    width = values.get("width", GptConfig.width)
    return config_json.built(GptConfig, {**values, "feed_forward": 4 * width if type(width) is int else 1}, where, FIELDS)


def refuse(structure: Structure, where: str | Path) -> None:
    """Raises UserError where transformers has no such model."""
    model = structure.model
    if model.feed_forward != 4 * model.width:
        raise UserError(f"model.feed_forward is {model.feed_forward}", where, f"transformers' GPT has 4 · model.width, {4 * model.width}")
    if model.activation not in ACTIVATIONS.values():
        raise UserError(f"model.activation is {model.activation}", where, f"transformers' GPT takes {' or '.join(ACTIVATIONS.values())}")
    if others := [head for head in structure.heads if head in ON_TEXTS and head != "choice"]:
        what = f"the head {others[0]} has a bias, and that of transformers' OpenAIGPTForSequenceClassification has none"
        raise UserError(what, where, "of GPT's fine-tuned heads only choice can be exported")


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """(the config.json of a model for AutoConfig of transformers, {our output: attributes} of the class that it names).

    vocabulary: the tokenizer's, None without one.
    """
    model = structure.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(structure.heads))
    data = {
        "architectures": [f"OpenAIGPT{ending}"],
        "model_type": "openai-gpt",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "afn": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == model.activation),
        **SUMMARY,
        **fine_tuned.rates_json(RATES, structure),
        "pad_token_id": (vocabulary or model.published_vocabulary).pad,
        "tie_word_embeddings": True,
    }
    if vocabulary and vocabulary.cls >= 0:
        data |= {"bos_token_id": vocabulary.cls, "eos_token_id": vocabulary.sep}
    return data, {name: attributes for name, attributes in outputs.items() if name in structure.heads}


TRANSFORMERS = Transformers(("openai-gpt",), read, write)
