"""config.json of one network to a model of ours and back, two networks to a pair, and what cannot be converted."""

import dataclasses
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.families.electra import names, sizes, transformers, two_models
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.foreign import Structure
from tests.convert import folders

WHERE = Path("config.json")


def test_a_config_becomes_a_model_and_comes_back() -> None:
    for architecture in folders.ELECTRAS:
        data, heads = folders.config(architecture), names.heads_of(folders.shapes(architecture), architecture)
        model = transformers.model_of(data, WHERE)
        assert (model.width, model.feed_forward, model.layers, model.heads, model.embedding) == (8, 12, 2, 2, 6)
        assert model == two_models.alone(model, "generator") == two_models.alone(model, "discriminator")
        assert (model.dropout, model.attention_dropout, model.positions, model.types) == (0.1, 0.2, 16, 2)
        labels = ("no", "maybe", "yes") if {"classifier", "tags"} & set(heads) else ()
        back, _ = transformers.described(Structure(model, heads, labels), None)
        differs = {key for key in data if back.get(key) != data[key]}
        allowed = {"transformers_version", "classifier_dropout", "is_decoder", "dtype"}
        assert differs <= (allowed if labels else allowed | {"id2label"})


def test_what_is_not_said_is_what_transformers_takes() -> None:
    """ELECTRA-small's discriminator."""
    model = transformers.model_of({"model_type": "electra"}, WHERE)
    assert model == two_models.alone(sizes.electra(*sizes.ELECTRA["small"]), "discriminator")


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"is_decoder": True}, "is_decoder is set"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu'; only gelu"),
        ({"embedding_size": "6"}, "embedding_size is '6'"),
        ({"embedding_size": 0}, "embedding_size is 0"),
        ({"embedding_size": 1 << 31}, "embedding_size is 2147483648"),
        ({"num_attention_heads": 3}, "hidden_size 8 does not divide into num_attention_heads 3"),
        ({"max_position_embeddings": "16"}, "max_position_embeddings is '16'"),
    ],
)
def test_a_config_that_cannot_be_converted_is_one_line(changed: dict, words: str) -> None:
    with pytest.raises(UserError) as error:
        transformers.model_of(folders.config("ElectraModel") | changed, WHERE)
    assert str(error.value).startswith("config.json: ") and words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "activation, heads, words",
    [
        ("gelu_tanh", ("mlm",), "gelu_erf in the generator's head"),
        ("gelu_erf", ("pooler",), "no pooler but that of its classifier"),
        ("gelu_erf", ("pooler", "next_sentence"), "no next-sentence head"),
        ("gelu_erf", ("joint_spans",), "has no head joint_spans"),
        ("gelu_erf", ("pooler", "classifier"), "pooler_activation is tanh"),
    ],
)
def test_what_transformers_does_not_have_is_one_line(activation: str, heads: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        transformers.refuse(Structure(ElectraConfig(activation=activation), heads), WHERE)


@pytest.mark.parametrize("name", sizes.ELECTRA)
def test_a_published_pair_comes_apart_and_together(name: str) -> None:
    whole = sizes.electra(*sizes.ELECTRA[name])
    generator, discriminator = (two_models.alone(whole, network) for network in ("generator", "discriminator"))
    assert (generator.width, generator.generator_width, generator.embedding) == (whole.generator_width,) * 2 + (whole.embedding,)
    assert two_models.model_of(generator, discriminator, "embeddings") == whole


@pytest.mark.parametrize("field, value", [("vocab_size", 7), ("embedding", 9), ("positions", 3), ("types", 1)])
def test_networks_of_two_kinds_are_no_pair(field: str, value: int) -> None:
    one = two_models.alone(ElectraConfig(), "discriminator")
    with pytest.raises(UserError, match=f"the generator's model.{field} is {value}"):
        two_models.model_of(dataclasses.replace(one, **{field: value}), one, "embeddings")
