"""config.json to a model of ours and back, and what cannot be converted."""

import dataclasses
from pathlib import Path

import pytest

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.bert import names, transformers
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.config_json import Labels, labels_of
from jaxenc.families.foreign import Structure
from tests.convert import folders

WHERE = Path("config.json")
NUMBERED = ("LABEL_0", "LABEL_1", "LABEL_2")


def test_a_config_becomes_a_model_and_comes_back() -> None:
    for architecture in folders.ARCHITECTURES:
        data, held = folders.config(architecture), folders.shapes(architecture)
        column = transformers.column_of(data, WHERE)
        model = transformers.model_of(data, column, WHERE)
        assert (model.width, model.feed_forward, model.layers, model.heads, model.vocab_size) == (8, 12, 2, 2, 131)
        assert (model.dropout, model.attention_dropout, model.activation) == (0.1, 0.2, "gelu_erf")
        assert (model.positions, model.first_position, model.types) == ((14, 2, 1) if column == "roberta" else (16, 0, 2))
        heads = names.heads_of(held, names.file_of(column, held), architecture)
        labels = labels_of(data, 3, WHERE).names if {"classifier", "tags"} & set(heads) else ()
        back, _ = transformers.described(Structure(model, heads, labels), None)
        differs = {key for key in data if back.get(key) != data[key]}
        allowed = {"transformers_version", "classifier_dropout", "is_decoder", "bos_token_id", "eos_token_id", "dtype"}
        assert differs <= (allowed if labels else allowed | {"id2label"})


@pytest.mark.parametrize(
    "name, ours",
    [("gelu", "gelu_erf"), ("gelu_new", "gelu_tanh"), ("gelu_fast", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh"), ("relu", "relu")],
)
def test_activations_mean_what_transformers_computes(name: str, ours: str) -> None:
    assert transformers.model_of({"hidden_act": name}, "bert", WHERE).activation == ours


def test_google_research_writes_gelu_for_the_tanh_form() -> None:
    model = transformers.model_of({"hidden_act": "gelu", "type_vocab_size": 2, "vocab_size": 30522}, "google", WHERE)
    assert model == BertConfig(activation="gelu_tanh")


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"position_embedding_type": "relative_key_query"}, "position_embedding_type is 'relative_key_query'"),
        ({"is_decoder": True}, "is_decoder is set"),
        ({"add_cross_attention": True}, "add_cross_attention is set"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu'; only gelu"),
        ({"hidden_act": ["gelu"]}, "hidden_act is ['gelu']"),
        ({"hidden_size": "8"}, "hidden_size is '8'"),
        ({"num_attention_heads": 3}, "hidden_size 8 does not divide into num_attention_heads 3"),
        ({"layer_norm_eps": None}, "layer_norm_eps is None"),
        ({"max_position_embeddings": "16"}, "max_position_embeddings is '16'"),
        ({"pad_token_id": None}, "pad_token_id None"),
        ({"pad_token_id": -1}, "pad_token_id -1"),
        ({"type_vocab_size": 1e308}, "type_vocab_size is 1e+308"),
        ({"id2label": {"0": "a", "1": "a", "2": "b"}}, "gives two classes one name"),
        ({"hidden_size": 1 << 31}, "hidden_size is 2147483648"),
        ({"max_position_embeddings": 10**30}, "max_position_embeddings is 1000"),
        ({"pad_token_id": 15}, "model.positions is 0"),
        ({"id2label": {"0": "a", "1.5": "b"}}, "id2label has the id '1.5'; number the classes"),
        ({"id2label": ["a"]}, "id2label is ['a'], which does not name the classes"),
        ({"id2label": None, "label2id": {"a": 0.5}}, "label2id has the id 0.5"),
        ({"label2id": {"no": 0, "maybe": 2, "yes": 1}}, "id2label and label2id give 'maybe' two ids"),
        ({"problem_type": "ranking"}, "problem_type is 'ranking'; set it to regression or single_label_classification or"),
        ({"id2label": None, "num_labels": "2"}, "num_labels is '2'; set it to 3"),
        ({"id2label": None, "num_labels": 0}, "num_labels is 0; set it to 3"),
    ],
)
def test_a_config_that_cannot_be_converted_is_one_line(changed: dict, words: str) -> None:
    data = folders.config("RobertaModel") | changed
    with pytest.raises(UserError) as error:
        transformers.model_of(data, transformers.column_of(data, WHERE), WHERE)
        labels_of(data, 3, WHERE)
    assert str(error.value).startswith("config.json: ") and words in str(error.value) and "\n" not in str(error.value)


def test_labels_without_names_are_numbered() -> None:
    assert labels_of({}, 2, WHERE) == labels_of({"id2label": {}}, 2, WHERE) == Labels(("LABEL_0", "LABEL_1"))


@pytest.mark.parametrize(
    "data, names, said",
    [
        ({"id2label": {"1": "b", "0": "a", "2": "c"}}, ("a", "b", "c"), ()),
        ({"label2id": {"b": 1, "a": 0, "c": 2}}, ("a", "b", "c"), ()),
        # The defaults of transformers beside names of one's own.
        ({"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}}, ("a", "b", "c"), ()),
        ({"id2label": {"0": "a", "1": "b"}, "num_labels": 3}, NUMBERED, ("id2label names 2 classes, 0 to 1, and the classifier has 3 ",)),
        ({"id2label": {"0": "a", "2": "c", "5": "d"}}, NUMBERED, ("id2label names 3 classes, 0 to 5, and the classifier has 3 rows",)),
        ({"id2label": {"1": "a", "2": "b", "3": "c"}}, NUMBERED, ("id2label names 3 classes, 1 to 3",)),
        ({"label2id": {"a": 0}}, NUMBERED, ("label2id names 1 classes",)),
        ({"num_labels": 7}, NUMBERED, ("num_labels is 7 and the classifier has 3 rows",)),
        ({"problem_type": "single_label_classification"}, NUMBERED, ()),
        ({"problem_type": "multi_label_classification"}, NUMBERED, ()),
        ({"problem_type": "regression"}, NUMBERED, ("problem_type is regression: the logits are converted",)),
    ],
)
def test_the_tensors_decide_how_many_classes_there_are(data: dict, names: tuple[str, ...], said: tuple[str, ...]) -> None:
    """R17: three rows of a classifier under fields that name other numbers."""
    found = labels_of(data, 3, WHERE)
    assert found.names == names and len(found.notes) == len(said)
    assert all(note.startswith(words) for note, words in zip(found.notes, said, strict=True))


@pytest.mark.parametrize(
    "column, heads, activation, words",
    [
        ("roberta", ("mlm",), "gelu_tanh", "transformers' RoBERTa has gelu_erf in its head"),
        ("roberta", ("pooler", "next_sentence"), "gelu_erf", "has no next-sentence head"),
        ("bert", ("pooler", "classifier", "tags"), "gelu_erf", "no model with the heads classifier and tags"),
        ("bert", ("rtd",), "gelu_erf", "no replaced-token head"),
    ],
)
def test_what_transformers_does_not_have_is_one_line(column: str, heads: tuple[str, ...], activation: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        transformers.refuse(Structure(BertConfig(activation=activation), heads), column, WHERE)


@pytest.mark.parametrize("column", ["bert", "roberta"])
def test_a_pooler_that_is_not_tanh_is_one_line(column: str) -> None:
    """transformers would compute another vector from the same numbers."""
    heads = ("pooler", "classifier")
    transformers.refuse(Structure(BertConfig(), heads, ("a", "b")), column, WHERE)
    with pytest.raises(UserError, match="objective.pooler_activation is gelu_erf; transformers' BERT and RoBERTa have tanh"):
        transformers.refuse(Structure(BertConfig(), heads, ("a", "b"), "gelu_erf"), column, WHERE)


def test_positions_that_start_elsewhere_cannot_be_exported() -> None:
    structure = Structure(BertConfig(first_position=2), ("mlm",))
    vocabulary = Vocabulary(131, pad=4, unk=3, cls=0, sep=2, mask=130, reserved=(), fingerprint="")
    with pytest.raises(UserError, match="model.first_position is 2; transformers has 0 .BERT. and 5"):
        transformers.described(structure, vocabulary)
    named, _ = transformers.described(structure, dataclasses.replace(vocabulary, pad=1))
    assert (named["pad_token_id"], named["bos_token_id"], named["eos_token_id"]) == (1, 0, 2)
    unframed, _ = transformers.described(structure, dataclasses.replace(vocabulary, pad=1, cls=-1, sep=-1))
    assert (unframed["bos_token_id"], unframed["eos_token_id"]) == (None, None)
