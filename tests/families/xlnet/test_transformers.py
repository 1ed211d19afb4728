"""XLNet's config.json to a model of ours and back, and what cannot be converted."""

import dataclasses
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.families import config_json
from jaxenc.families.bert.vocabulary import published_bert
from jaxenc.families.foreign import Structure
from jaxenc.families.xlnet import names, sizes, transformers
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.names import XlnetFile
from tests.convert import folders

WHERE = Path("config.json")


def test_a_config_becomes_a_model_and_comes_back() -> None:
    for architecture in folders.XLNETS:
        data, file = folders.config(architecture), XlnetFile("" if architecture == "XLNetModel" else "transformer.")
        heads = names.heads_of(folders.shapes(architecture), file, architecture)
        model = transformers.model_of(data, False, WHERE)
        assert (model.vocab_size, model.width, model.layers, model.heads, model.feed_forward, model.clamp) == (131, 8, 2, 2, 12, 0)
        assert (model.activation, model.norm_epsilon, model.dropout, model.attention_dropout) == ("gelu_erf", 1e-12, 0.2, 0.2)
        labels = ("no", "maybe", "yes") if {"classifier", "tags"} & set(heads) else ()
        back, _ = transformers.described(Structure(model, heads, labels), None)
        differs = {key for key in data if back.get(key) != data[key]}
        unread = {"bos_token_id", "eos_token_id", "start_n_top", "end_n_top", "same_length", "use_mems_eval", "use_mems_train"}
        allowed = unread | {"transformers_version", "dtype"}
        assert differs <= (allowed if labels else allowed | {"id2label"})


def test_what_is_not_said_is_what_transformers_takes() -> None:
    """XLNet-large, with the erf form."""
    large = sizes.xlnet(*sizes.XLNET["large"])
    assert transformers.model_of({"model_type": "xlnet"}, False, WHERE) == dataclasses.replace(large, activation="gelu_erf")
    assert transformers.model_of({"n_token": 32000}, True, WHERE) == large


def test_numbers_that_only_some_configs_have() -> None:
    model = transformers.model_of({"n_token": 50, "clamp_len": 7, "d_head": None, "dropout": 0}, False, WHERE)
    assert (model.vocab_size, model.clamp, model.dropout, model.attention_dropout) == (50, 7, 0, 0)
    data, _ = transformers.described(Structure(model, ()), published_bert(50))
    assert (data["clamp_len"], data["pad_token_id"]) == (7, 0)
    assert transformers.model_of({"clamp_len": 0}, False, WHERE).clamp == 0


def test_the_rate_of_attention_weights_does_not_leave() -> None:
    """transformers has one for both."""
    data, _ = transformers.described(Structure(XlnetConfig(attention_dropout=0.3, activation="gelu_erf"), ()), None)
    assert transformers.model_of(data, False, WHERE) == XlnetConfig(activation="gelu_erf")


@pytest.mark.parametrize(
    "field, value",
    [("mem_len", 384), ("reuse_len", 256), ("same_length", True), ("untie_r", False), ("use_mems_eval", False), ("end_n_top", 3)],
)
def test_what_changes_no_number_is_not_read(field: str, value: object) -> None:
    data = folders.config("XLNetModel")
    assert transformers.model_of(data | {field: value}, False, WHERE) == transformers.model_of(data, False, WHERE)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"attn_type": "uni"}, "attn_type is 'uni'; only 'bi'"),
        ({"bi_data": True}, "bi_data is set"),
        ({"d_head": 8}, "d_head is 8; only d_model / n_head, 4"),
        ({"clamp_len": "7"}, "clamp_len is '7'"),
        ({"clamp_len": None}, "clamp_len is None"),
        ({"ff_activation": "silu"}, "ff_activation is 'silu'; only gelu"),
        ({"d_inner": "12"}, "d_inner is '12'"),
        ({"d_model": 1 << 31}, "d_model is 2147483648"),
        ({"n_head": 3}, "d_model 8 does not divide into n_head 3"),
        ({"n_layer": 0}, "n_layer is 0"),
    ],
)
def test_a_config_that_cannot_be_converted_is_one_line(changed: dict, words: str) -> None:
    with pytest.raises(UserError) as error:
        transformers.model_of(folders.config("XLNetModel") | changed, False, WHERE)
    assert str(error.value).startswith("config.json: ") and words in str(error.value) and "\n" not in str(error.value)


def test_biases_that_layers_share_are_one_line() -> None:
    with pytest.raises(UserError, match="untie_r is off"):
        transformers.model_of({"untie_r": False}, True, WHERE)


@pytest.mark.parametrize("field, value", [("summary_type", "first"), ("summary_use_proj", False), ("summary_activation", None)])
def test_a_classifier_that_reads_something_else_is_one_line(field: str, value: object) -> None:
    data = folders.config("XLNetForSequenceClassification")
    config_json.only(transformers.SUMMARY, data, WHERE)
    config_json.only(transformers.SUMMARY, {}, WHERE)
    with pytest.raises(UserError, match=f"config.json: {field} is {value!r}; only"):
        config_json.only(transformers.SUMMARY, data | {field: value}, WHERE)


@pytest.mark.parametrize(
    "heads, words",
    [(("summary",), "no summary without a classifier"), (("classifier", "tags", "summary"), "no model with the heads classifier and tags")],
)
def test_what_transformers_does_not_have_is_one_line(heads: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        transformers.refuse(heads, "this model")
