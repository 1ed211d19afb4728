"""XLNet in folders of transformers, in and out.

What changes no number of a row read forward without memory is not read: mem_len, reuse_len, use_mems_eval, use_mems_train, same_length
(of attn_type uni), start_n_top, end_n_top (of the beam), and untie_r, since each layer has biases of its own in torch's files.

Where a text that is classified is padded: zihangdai/xlnet and transformers read the vector of the last place of a row and so pad on the
left; here it is that of the last token that is no padding (`heads.summary.Summary`), so that rows may be padded on either side, and
`encode` pads all of them at their end. In transformers an exported classifier is right for rows padded on the left alone, which is what
the tokenizer beside it does. Rows with answers (SQuAD) have their padding at the end everywhere.
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json
from jaxenc.families.foreign import Export, Import, Structure, Transformers, Weights, check_layers
from jaxenc.families.xlnet import names
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.names import XlnetFile
from jaxenc.families.xlnet.vocabulary import published_xlnet
from jaxenc.formats.tensor import Tensor, unstacked

# As `bert.transformers.ENDINGS`.
ENDINGS = (
    (("summary", "classifier"), "ForSequenceClassification", {"classifier": ("logits",)}),
    (("tags",), "ForTokenClassification", {"tags": ("logits",)}),
    (("spans",), "ForQuestionAnsweringSimple", {"spans": ("start_logits", "end_logits")}),
    (("lm",), "LMHeadModel", {"lm": ("logits",)}),
    ((), "Model", {}),
)
FIELDS = {
    "vocab_size": "vocab_size",
    "width": "d_model",
    "layers": "n_layer",
    "heads": "n_head",
    "feed_forward": "d_inner",
    "norm_epsilon": "layer_norm_eps",
    "dropout": "dropout",
    "init_scale": "initializer_range",
}
# What transformers takes for fields that a config.json does not name: those of XLNet-large.
DEFAULTS = {"width": 1024, "layers": 24, "heads": 16, "feed_forward": 4096}
# What a classifier computes here; each is also what transformers takes where its config.json says nothing.
SUMMARY = {"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"}
# Fields of a run that neither kind of file states.
UNSTATED = ("data.length", "data.reuse", "objective.permutation", "objective.memory", "objective.predictions")


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a folder of transformers; its heads are those whose tensors are there.

    `ff_activation: gelu` is the erf form, which transformers computes, whatever the weights were trained with.
    """
    file = names.file_of(tensors)
    heads = names.heads_of(tensors, file, where)
    if "classifier" in heads:
        only_last(config, where)
    return imported(model_of(config, False, where), heads, config, file, tensors, where)


def write(ours: Weights) -> Export:
    """The model as transformers has it; an encoder without heads as XLNetModel saves itself, names bare."""
    heads = ours.structure.heads
    refuse(heads, "this model")
    config, outputs = described(ours.structure, ours.vocabulary)
    table = names.entries(ours.structure.model, heads, XlnetFile("transformer." if heads else ""))
    return Export(config, table, ours.params, outputs, padding="left")


def imported(
    model: XlnetConfig, heads: tuple[str, ...], config: Mapping[str, Any], file: XlnetFile, tensors: Mapping[str, Tensor], where: Path
) -> Import:
    """The model of a file of transformers or of zihangdai/xlnet. config: what names its classes.

    Permutations have the published lengths: no file says how long the rows were, and mem_len is what a caller of transformers remembers.
    Raises UserError for more layers than it has tensors, and for heads that transformers has in no one model.
    """
    refuse(heads, where)
    check_layers(model.layers, tensors, where)
    labelled = [head for head in heads if head in ("classifier", "tags")]
    labels = config_json.labels_of(config, names.classes_of(tensors, labelled[0], file), where) if labelled else ()
    found = Import(Structure(model, heads, labels), unstacked(tensors, names.stacked(file)), names.entries(model, heads, file))
    if heads != ("lm",):
        return found
    note = "does not say how long its rows were, so the run has XLNet's published lengths"
    return dataclasses.replace(found, unstated=UNSTATED, note=note)


def model_of(data: Mapping[str, Any], google: bool, where: Path) -> XlnetConfig:
    """The model of a config.json, or of `google`'s xlnet_config.json. transformers has one rate for all dropout.

    Raises UserError, which begins with `where`, for what we do not compute.
    """
    if google and not data.get("untie_r", True):
        raise UserError(f"{where}: untie_r is off: only models whose layers have biases of their own can be converted")
    if data.get("attn_type", "bi") != "bi":
        raise UserError(f"{where}: attn_type is {data['attn_type']!r}: only 'bi' can be converted")
    if data.get("bi_data"):
        raise UserError(f"{where}: bi_data is set, which reads half of a batch backward: here a row says its direction, set it to false")
    # The name in zihangdai/xlnet, and in config.json before transformers 4.
    data = {"vocab_size": data["n_token"], **data} if "n_token" in data else data
    activations = config_json.GOOGLE_ACTIVATIONS if google else config_json.ACTIVATIONS
    values = DEFAULTS | config_json.sizes(data, FIELDS, activations, where, "ff_activation")
    clamp = data.get("clamp_len", -1)
    if type(clamp) is not int:
        raise UserError(f"{where}: clamp_len is {clamp!r}: it takes a whole number, -1 for none")
    values |= {"clamp": max(clamp, 0)} | ({"attention_dropout": values["dropout"]} if "dropout" in values else {})
    model = config_json.built(XlnetConfig, values, where)
    if data.get("d_head") not in (None, model.width // model.heads):
        raise UserError(f"{where}: d_head is {data['d_head']!r}: only d_model / n_head, {model.width // model.heads}, can be converted")
    return model


def only_last(data: Mapping[str, Any], where: Path) -> None:
    """Raises UserError where a classifier of transformers reads another vector than we compute."""
    for name, value in SUMMARY.items():
        if data.get(name, value) != value:
            raise UserError(f"{where}: {name} is {data[name]!r}: only {value!r} can be converted")


def refuse(heads: Collection[str], where: str | Path) -> None:
    """Raises UserError where transformers has no such model."""
    if ("summary" in heads) != ("classifier" in heads):
        raise UserError(f"{where}: transformers' XLNet has no summary without a classifier and no classifier without a summary")
    if {"classifier", "tags"} <= set(heads):
        raise UserError(f"{where}: transformers has no model that classifies texts and tokens: keep one of the two heads")


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """What transformers' AutoConfig reads of a model of ours, and {our output: attributes} of the class that it names.

    The rate of dropout on attention weights is not in it: transformers has one for both. Nor is a memory: there it is an argument.
    """
    model = structure.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(structure.heads))
    data = {
        "architectures": [f"XLNet{ending}"],
        "model_type": "xlnet",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "d_head": model.width // model.heads,
        "ff_activation": config_json.HIDDEN_ACT[model.activation],
        "attn_type": "bi",
        "bi_data": False,
        "clamp_len": model.clamp or -1,
        "untie_r": True,
        "mem_len": None,
        "reuse_len": None,
        **SUMMARY,
        "summary_last_dropout": model.dropout,
        "pad_token_id": (vocabulary or published_xlnet(model.vocab_size)).pad,
        "tie_word_embeddings": True,
    }
    return data | (config_json.labels_json(structure.labels) if structure.labels else {}), outputs


TRANSFORMERS = Transformers(("xlnet",), read, write)
