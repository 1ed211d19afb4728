"""Reads and writes XLNet in folders of transformers.

These fields of config.json are not read, because they do not change the result for a row that is read forward without memory: mem_len,
reuse_len, use_mems_eval, use_mems_train, same_length (only for attn_type uni), and untie_r (torch files always have separate biases for
each layer). Nor are start_n_top and end_n_top: the search of the head `beam_spans` is as wide as published, 5 and 5.

Padding of a text to classify: zihangdai/xlnet and transformers take the vector of the last place of a row, so they must pad on the left.
Here it is the vector of the last token that is not padding (`heads.summary.Summary`), so either side works, and `encode` pads at the end.
An exported classifier gives the right result in transformers only for rows padded on the left, as the exported tokenizer pads them. Rows
with answers (SQuAD) are padded at the end everywhere.
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.foreign import Export, Import, Structure, Transformers, Weights, check_layers, class_of
from jaxenc.families.xlnet import names
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.names import XlnetFile
from jaxenc.families.xlnet.vocabulary import published_xlnet
from jaxenc.formats.tensor import Tensor, unstacked
from jaxenc.heads import ON_TEXTS

# As `bert.transformers.ENDINGS`.
ENDINGS = (
    *fine_tuned.endings("summary"),
    (("spans",), "ForQuestionAnsweringSimple", {"spans": ("start_logits", "end_logits")}),
    # Its outputs are not compared: it searches among padding too, and takes the last place of a row for CLS, unless it is told otherwise.
    (("beam_spans",), "ForQuestionAnswering", {}),
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
# The defaults of transformers for fields that a config.json leaves out: those of XLNet-large.
DEFAULTS = {"width": 1024, "layers": 24, "heads": 16, "feed_forward": 4096}
# The settings that a classifier here computes, which are also the defaults of transformers.
SUMMARY = {"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"}
# The dropout rates on the inputs of heads: {field: heads}.
RATES = {"summary_last_dropout": ON_TEXTS}
# Fields of a run that neither kind of file states.
UNSTATED = ("data.length", "data.reuse", "objective.permutation", "objective.memory", "objective.predictions")


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model in a folder of transformers, with the heads whose tensors it holds. Raises UserError for what cannot be converted.

    `ff_activation: gelu` is the erf form, as transformers computes it, even for weights that were trained with the tanh form.
    """
    file = names.file_of(tensors)
    heads = names.heads_of(tensors, file, class_of(config))
    if "summary" in heads:
        config_json.only(SUMMARY, config, where)
    return imported(model_of(config, False, where), heads, config, file, tensors, where)


def write(ours: Weights) -> Export:
    """The model in the format of transformers; without heads its tensors have no prefix, as in XLNetModel. Raises UserError as `refuse`."""
    heads = ours.structure.heads
    refuse(heads, "this model")
    config, outputs = described(ours.structure, ours.vocabulary)
    table = names.entries(ours.structure.model, heads, XlnetFile("transformer." if heads else ""))
    return Export(config, table, ours.params, outputs, padding="left")


def imported(
    model: XlnetConfig, heads: tuple[str, ...], config: Mapping[str, Any], file: XlnetFile, tensors: Mapping[str, Tensor], where: Path
) -> Import:
    """The model of a file of transformers or of zihangdai/xlnet. config: of transformers, for the names of the classes; {} for none.

    The run gets the published lengths of rows and permutations, since no file states them; mem_len only says how much memory a caller of
    transformers keeps. Raises UserError for more layers than tensors, and as `refuse`.
    """
    refuse(heads, where)
    check_layers(model.layers, tensors, where)
    heads, labels = fine_tuned.read(config, heads, lambda head: names.classes_of(tensors, head, file), where)
    tensors = unstacked(tensors, names.stacked(file))
    structure = Structure(model, heads, labels.names)
    structure = dataclasses.replace(structure, dropout=fine_tuned.rates(config, RATES, structure, where))
    found = Import(structure, tensors, names.entries(model, heads, file), notes=labels.notes)
    if heads != ("lm",):
        return found
    note = "does not say how long its rows were, so the run has XLNet's published lengths"
    return dataclasses.replace(found, unstated=UNSTATED, note=note)


def model_of(data: Mapping[str, Any], google: bool, where: Path) -> XlnetConfig:
    """The model of a config.json, or with `google` of an xlnet_config.json. Both have one rate for all dropout.

    Raises UserError, which begins with `where`, for a setting that is not implemented here.
    """
    if google and not data.get("untie_r", True):
        raise UserError("untie_r is off", where, "only models whose layers have biases of their own can be converted")
    if data.get("attn_type", "bi") != "bi":
        raise UserError(f"attn_type is {data['attn_type']!r}", where, "only 'bi' can be converted")
    if data.get("bi_data"):
        raise UserError("bi_data is set, which reads half of a batch backward", where, "here a row says its direction, set it to false")
    # The name in zihangdai/xlnet, and in config.json before transformers 4.
    data = {"vocab_size": data["n_token"], **data} if "n_token" in data else data
    activations = config_json.GOOGLE_ACTIVATIONS if google else config_json.ACTIVATIONS
    values = DEFAULTS | config_json.sizes(data, FIELDS, activations, where, "ff_activation")
    clamp = data.get("clamp_len", -1)
    if type(clamp) is not int:
        raise UserError(f"clamp_len is {clamp!r}", where, "it takes a whole number, -1 for none")
    values |= {"clamp": max(clamp, 0)} | ({"attention_dropout": values["dropout"]} if "dropout" in values else {})
    model = config_json.built(XlnetConfig, values, where, FIELDS)
    if data.get("d_head") not in (None, model.width // model.heads):
        raise UserError(f"d_head is {data['d_head']!r}", where, f"only d_model / n_head, {model.width // model.heads}, can be converted")
    return model


def refuse(heads: Collection[str], where: str | Path) -> None:
    """Raises UserError where transformers has no such model."""
    if ("summary" in heads) != bool(set(heads) & set(ON_TEXTS)):
        raise UserError(
            "transformers' XLNet has no summary without a classifier and no classifier without a summary",
            where,
            "keep both heads, or neither",
        )
    fine_tuned.refuse(heads, where)


def described(structure: Structure, vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """(the config.json of a model for AutoConfig of transformers, {our output: attributes} of the class that it names).

    The dropout rate of the attention weights is lost, since transformers has one rate, and so is the memory, which is an argument there.
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
        "pad_token_id": (vocabulary or published_xlnet(model.vocab_size)).pad,
        "tie_word_embeddings": True,
    }
    return data | fine_tuned.rates_json(RATES, structure) | fine_tuned.described(structure), outputs


TRANSFORMERS = Transformers(("xlnet",), read, write)
