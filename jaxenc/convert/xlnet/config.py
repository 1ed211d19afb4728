"""XLNet's config.json, as transformers writes it, from and to a Run, and zihangdai/xlnet's xlnet_config.json to one.

What changes no number of a row read forward without memory is not read: mem_len, reuse_len, use_mems_eval, use_mems_train, same_length
(of attn_type uni), start_n_top, end_n_top (of the beam), and untie_r, since each layer has biases of its own in torch's files.
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc.convert import config as configs
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary, published_xlnet
from jaxenc.errors import UserError
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.training.run import Run

# As `convert.bert.config.ENDINGS`.
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
    activations = configs.GOOGLE_ACTIVATIONS if google else configs.ACTIVATIONS
    values = DEFAULTS | configs.sizes(data, FIELDS, activations, where, "ff_activation")
    clamp = data.get("clamp_len", -1)
    if type(clamp) is not int:
        raise UserError(f"{where}: clamp_len is {clamp!r}: it takes a whole number, -1 for none")
    values |= {"clamp": max(clamp, 0)} | ({"attention_dropout": values["dropout"]} if "dropout" in values else {})
    model = configs.built(XlnetConfig, values, where)
    if data.get("d_head") not in (None, model.width // model.heads):
        raise UserError(f"{where}: d_head is {data['d_head']!r}: only d_model / n_head, {model.width // model.heads}, can be converted")
    return model


def only_last(data: Mapping[str, Any], where: Path) -> None:
    """Raises UserError where a classifier of transformers reads another vector than we compute."""
    for name, value in SUMMARY.items():
        if data.get(name, value) != value:
            raise UserError(f"{where}: {name} is {data[name]!r}: only {value!r} can be converted")


def run_of(model: XlnetConfig, heads: Collection[str], labels: tuple[str, ...]) -> Run:
    """A Run for a converted model: its objective is the one that trains these heads, everything else has its default.

    Permutations have the published lengths: no file says how long the rows were, and mem_len is what a caller of transformers remembers.
    """
    if tuple(heads) == ("lm",):
        return dataclasses.replace(Run(PlmConfig(), model), data=DataConfig(rows="streams", length=512, reuse=256))
    return Run(HeadsConfig(tuple(heads), labels), model)


def note(run: Run) -> str:
    """What people are told of the lengths of `run_of`; '' where it has none."""
    if not isinstance(run.objective, PlmConfig):
        return ""
    fields = {f"data.{name}": getattr(run.data, name) for name in ("length", "reuse")}
    fields |= {f"objective.{name}": getattr(run.objective, name) for name in ("permutation", "memory", "predictions")}
    told = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f"does not say how long its rows were, so the run has XLNet's published lengths: {told}; set your own to train on"


def refuse(heads: Collection[str], where: str | Path) -> None:
    """Raises UserError where transformers has no such model."""
    if ("summary" in heads) != ("classifier" in heads):
        raise UserError(f"{where}: transformers' XLNet has no summary without a classifier and no classifier without a summary")
    if {"classifier", "tags"} <= set(heads):
        raise UserError(f"{where}: transformers has no model that classifies texts and tokens: keep one of the two heads")


def config_json(run: Run, heads: Collection[str], vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """What transformers' AutoConfig reads of a model of ours, and {our output: attributes} of the class that it names.

    The rate of dropout on attention weights is not in it: transformers has one for both. Nor is a memory: there it is an argument.
    """
    model = run.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(heads))
    data = {
        "architectures": [f"XLNet{ending}"],
        "model_type": "xlnet",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "d_head": model.width // model.heads,
        "ff_activation": configs.HIDDEN_ACT[model.activation],
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
    labels = run.objective.labels if isinstance(run.objective, HeadsConfig) else ()
    return {**data, **(configs.labels_json(labels) if labels else {})}, outputs
