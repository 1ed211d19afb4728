"""The table of BERT's and RoBERTa's names against lists written by hand, and config.json."""

import dataclasses
import itertools
from pathlib import Path

import pytest

from jaxenc import tree
from jaxenc.convert import bert, bert_config, key_map
from jaxenc.convert.bert import GOOGLE, Layout
from jaxenc.data.vocabulary import Vocabulary, unnamed
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.heads import NAMES, HeadsConfig
from jaxenc.precision import policy
from jaxenc.run import Run
from jaxenc.train.state import parameters
from tests.convert import published

WHERE = Path("config.json")
MODEL = BertConfig(
    vocab_size=published.VOCAB, width=published.WIDTH, layers=published.LAYERS, heads=2, feed_forward=published.INNER, positions=16
)
ROBERTA = dataclasses.replace(MODEL, positions=14, first_position=2, types=1)


def shapes(model: BertConfig, heads: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """{our path: shape} of an encoder with `heads`."""
    labels = ("a", "b", "c") if {"classifier", "tags"} & set(heads) else ()
    objective = HeadsConfig(heads, labels).build(model, unnamed(model.vocab_size), Execution(policy("float32"), "xla", "none", False), 8, 0)
    return {path: leaf.shape for path, leaf in tree.leaves(parameters(objective)[0])}


def subsets(left_out: str) -> list[tuple[str, ...]]:
    """Every set of heads that can be built, without both classifiers in one and without those of `left_out`."""
    names = [name for name in NAMES if name not in left_out.split()]
    every = [chosen for size in range(len(names) + 1) for chosen in itertools.combinations(names, size)]
    needs = lambda chosen: "pooler" in chosen or not {"classifier", "next_sentence"} & set(chosen)
    return [chosen for chosen in every if needs(chosen) and not {"classifier", "tags"} <= set(chosen)]


@pytest.mark.parametrize(
    "layout, model, left_out",
    [
        (Layout("bert", "bert."), MODEL, ""),
        (Layout("bert", "", gamma=True), dataclasses.replace(MODEL, types=0), ""),
        (Layout("roberta", "roberta."), ROBERTA, "next_sentence"),
        (GOOGLE, MODEL, "tags"),
    ],
)
def test_the_table_names_every_leaf_once_for_every_set_of_heads(layout: Layout, model: BertConfig, left_out: str) -> None:
    """The heads are found again from the names alone, and a table without one entry is refused."""
    whole = [shapes(model, heads) for heads in (("pooler", "mlm", "next_sentence", "classifier", "spans"), ("pooler", "tags"))]
    leaves = {path: shape for part in whole for path, shape in part.items()}
    for heads in subsets(left_out):
        held = {path: shape for path, shape in leaves.items() if path.split("/")[0] in ("embeddings", "encoder", *heads)}
        table = bert.entries(model, heads, layout)
        key_map._check_table(table, held)
        with pytest.raises(ValueError, match="named by no entry"):
            key_map._check_table(table[:-1], held)
        names = [entry.theirs for entry in table]
        architecture = "BertForTokenClassification" if "tags" in heads else ""
        assert bert.heads_of(names, layout, architecture) == heads


@pytest.mark.parametrize("architecture", published.ARCHITECTURES)
def test_names_and_shapes_are_those_of_transformers(architecture: str) -> None:
    wanted = published.shapes(architecture)
    family, data = bert_config.family_of(published.config(architecture), WHERE), published.config(architecture)
    layout = bert.layout_of(family, wanted)
    heads, model = bert.heads_of(wanted, layout, architecture), bert_config.model_of(data, family, WHERE)
    ours = shapes(model, heads)
    assert {entry.theirs: entry.transform.their_shape(ours[entry.ours]) for entry in bert.entries(model, heads, layout)} == wanted


def test_names_are_those_of_google_research() -> None:
    """run_pretraining.py's variables, and the heads of run_classifier.py and run_squad.py."""
    layer = "bert/encoder/layer_0/"
    dense = ["bert/pooler/dense", "cls/predictions/transform/dense"]
    dense += [f"{layer}attention/self/{part}" for part in ("query", "key", "value")]
    dense += [f"{layer}{part}/dense" for part in ("attention/output", "intermediate", "output")]
    norms = ["bert/embeddings", f"{layer}attention/output", f"{layer}output", "cls/predictions/transform"]
    wanted = [f"bert/embeddings/{table}_embeddings" for table in ("word", "position", "token_type")]
    wanted += [f"{name}/{leaf}" for name in dense for leaf in ("kernel", "bias")]
    wanted += [f"{name}/LayerNorm/{leaf}" for name in norms for leaf in ("gamma", "beta")]
    wanted += [f"cls/{head}/output_{leaf}" for head in ("seq_relationship", "squad") for leaf in ("weights", "bias")]
    wanted += ["cls/predictions/output_bias", "output_weights", "output_bias"]
    heads = ("pooler", "mlm", "next_sentence", "classifier", "spans")
    table = bert.entries(dataclasses.replace(MODEL, layers=1), heads, GOOGLE)
    assert sorted(entry.theirs for entry in table) == sorted(wanted)
    turned = {entry.theirs for entry in table if entry.transform.their_shape((2, 3)) == (3, 2)}
    assert turned == {"cls/seq_relationship/output_weights", "cls/squad/output_weights", "output_weights"}


@pytest.mark.parametrize("architecture", ["BertForSequenceClassification", "BertForTokenClassification", "Unheard", ""])
def test_a_classifier_is_of_texts_beside_a_pooler_unless_the_class_says_otherwise(architecture: str) -> None:
    names = ["bert.pooler.dense.weight", "classifier.weight"]
    head = "tags" if "Token" in architecture else "classifier"
    assert bert.heads_of(names, Layout("bert", "bert."), architecture) == ("pooler", head)
    alone = ("pooler", "classifier") if "Sequence" in architecture else ("tags",)
    assert bert.heads_of(names[1:], Layout("bert", "bert."), architecture) == alone


def test_a_config_becomes_a_model_and_comes_back() -> None:
    for architecture in published.ARCHITECTURES:
        data = published.config(architecture)
        family = bert_config.family_of(data, WHERE)
        model = bert_config.model_of(data, family, WHERE)
        assert (model.width, model.feed_forward, model.layers, model.heads, model.vocab_size) == (8, 12, 2, 2, 131)
        assert (model.dropout, model.attention_dropout, model.activation) == (0.1, 0.2, "gelu_erf")
        assert (model.positions, model.first_position, model.types) == ((14, 2, 1) if family == "roberta" else (16, 0, 2))
        heads = bert.heads_of(names := published.shapes(architecture), bert.layout_of(family, names), architecture)
        labels = bert_config.labels_of(data, WHERE) if {"classifier", "tags"} & set(heads) else ()
        run = bert_config.run_of(model, heads, labels)
        assert run.data.length == model.positions
        back = bert_config.config_json(run, heads, None, "float32")
        differs = {key for key in data if back.get(key) != data[key]}
        allowed = {"transformers_version", "classifier_dropout", "is_decoder", "bos_token_id", "eos_token_id"}
        assert differs <= (allowed if labels else allowed | {"id2label"})


def test_the_objective_is_the_one_that_trains_the_heads() -> None:
    kind = lambda *heads: bert_config.run_of(MODEL, heads, ("a", "b") if "tags" in heads else ()).objective
    assert kind("mlm").kind == "mlm" and kind("pooler", "mlm", "next_sentence").kind == "mlm_nsp"
    for heads in ((), ("pooler",), ("pooler", "mlm"), ("tags",), ("pooler", "next_sentence")):
        assert kind(*heads).kind == "heads" and kind(*heads).heads == heads


@pytest.mark.parametrize(
    "name, ours",
    [("gelu", "gelu_erf"), ("gelu_new", "gelu_tanh"), ("gelu_fast", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh"), ("relu", "relu")],
)
def test_activations_mean_what_transformers_computes(name: str, ours: str) -> None:
    assert bert_config.model_of({"hidden_act": name}, "bert", WHERE).activation == ours


def test_google_research_writes_gelu_for_the_tanh_form() -> None:
    model = bert_config.model_of({"hidden_act": "gelu", "type_vocab_size": 2, "vocab_size": 30522}, "google", WHERE)
    assert model == BertConfig(activation="gelu_tanh")


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"model_type": "distilbert"}, "its model_type is 'distilbert': bert, roberta, xlm-roberta, camembert can be converted"),
        ({"model_type": 3}, "its model_type is 3"),
        ({"model_type": ["bert"]}, "its model_type is ['bert']"),
        ({"model_type": None, "architectures": ["DistilBertModel"]}, "its model_type is 'DistilBertModel'"),
        ({"position_embedding_type": "relative_key_query"}, "position_embedding_type is 'relative_key_query'"),
        ({"is_decoder": True}, "is_decoder is set"),
        ({"add_cross_attention": True}, "add_cross_attention is set"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu': gelu"),
        ({"hidden_act": ["gelu"]}, "hidden_act is ['gelu']"),
        ({"hidden_size": "8"}, "model.width is '8'"),
        ({"num_attention_heads": 3}, "model.width 8 does not divide into model.heads 3"),
        ({"layer_norm_eps": None}, "model.norm_epsilon is None"),
        ({"max_position_embeddings": "16"}, "max_position_embeddings is '16'"),
        ({"pad_token_id": None}, "pad_token_id None"),
        ({"hidden_size": 1 << 31}, "hidden_size is 2147483648"),
        ({"max_position_embeddings": 10**30}, "max_position_embeddings is 1000"),
        ({"pad_token_id": -1}, "pad_token_id -1"),
        ({"type_vocab_size": 1e308}, "type_vocab_size is 1e+308"),
        ({"id2label": {"0": "a", "1": "a"}}, "gives two classes one name"),
        ({"pad_token_id": 15}, "model.positions is 0"),
        ({"id2label": {"0": "a", "2": "b"}}, "id2label does not name the classes"),
        ({"id2label": {}}, "id2label does not name the classes"),
        ({"id2label": ["a"]}, "id2label does not name the classes"),
        ({"id2label": None, "num_labels": "2"}, "id2label does not name the classes"),
        ({"id2label": None, "num_labels": 1 << 60}, "id2label does not name the classes"),
    ],
)
def test_a_config_that_cannot_be_converted_is_one_line(changed: dict, words: str) -> None:
    data = published.config("RobertaModel") | changed
    with pytest.raises(UserError) as error:
        bert_config.model_of(data, bert_config.family_of(data, WHERE), WHERE)
        bert_config.labels_of(data, WHERE)
    assert str(error.value).startswith("config.json: ") and words in str(error.value) and "\n" not in str(error.value)


def test_folders_from_before_model_types_name_their_class() -> None:
    old = {"architectures": ["RobertaForMaskedLM"]}
    assert bert_config.family_of(old, WHERE) == "roberta" and bert_config.family_of({"architectures": ["BertModel"]}, WHERE) == "bert"
    assert bert_config.family_of({"hidden_size": 768}, WHERE) == "bert"


def test_labels_without_names_are_numbered() -> None:
    assert bert_config.labels_of({}, WHERE) == ("LABEL_0", "LABEL_1")
    assert bert_config.labels_of({"num_labels": 3}, WHERE) == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert bert_config.labels_of({"id2label": {"1": "b", "0": "a"}}, WHERE) == ("a", "b")


@pytest.mark.parametrize(
    "family, heads, activation, words",
    [
        ("roberta", ("mlm",), "gelu_tanh", "transformers' RoBERTa has gelu_erf in its head"),
        ("roberta", ("pooler", "next_sentence"), "gelu_erf", "has no next-sentence head"),
        ("bert", ("pooler", "classifier", "tags"), "gelu_erf", "keep one of the two heads"),
    ],
)
def test_what_transformers_does_not_have_is_one_line(family: str, heads: tuple[str, ...], activation: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        bert_config.check(dataclasses.replace(MODEL, activation=activation), heads, family, WHERE)


def test_positions_that_start_elsewhere_cannot_be_exported() -> None:
    run = Run(model=dataclasses.replace(ROBERTA, first_position=2))
    vocabulary = Vocabulary(131, pad=4, unk=3, cls=0, sep=2, mask=130, reserved=(), fingerprint="")
    with pytest.raises(UserError, match="model.first_position is 2: transformers has 0 .BERT. and 5"):
        bert_config.config_json(run, ["mlm"], vocabulary, "float32")
    named = bert_config.config_json(run, ["mlm"], dataclasses.replace(vocabulary, pad=1), "float32")
    assert (named["pad_token_id"], named["bos_token_id"], named["eos_token_id"]) == (1, 0, 2)
