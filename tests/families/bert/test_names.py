"""The table of BERT's and RoBERTa's names against lists written by hand."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from jaxenc import heads, tree
from jaxenc.convert import runs
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import unnamed
from jaxenc.execution import Execution
from jaxenc.families.bert import names, transformers
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.bert.names import GOOGLE_FILE, BertFile
from jaxenc.formats import key_map
from jaxenc.formats.tensor import Tensor
from jaxenc.inference.network import objective_of
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.precision import policy
from jaxenc.training.state import parameters
from tests.convert import folders

MODEL = BertConfig(vocab_size=folders.VOCAB, width=folders.WIDTH, layers=folders.LAYERS, heads=2, feed_forward=folders.INNER, positions=16)
ROBERTA = dataclasses.replace(MODEL, positions=14, first_position=2, types=1)


def shapes(model: BertConfig, heads: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """{our path: shape} of an encoder with `heads`."""
    labels = ("a", "b", "c") if {"classifier", "tags"} & set(heads) else ()
    how = Execution(policy("float32"), "xla", "none", False)
    objective = HeadsConfig(heads, labels, choices=2 * ("choice" in heads)).build(
        model, PhaseSetting(unnamed(model.vocab_size), how, DataConfig())
    )
    return {path: leaf.shape for path, leaf in tree.leaves(parameters(objective)[0])}


def subsets(left_out: str) -> list[tuple[str, ...]]:
    """Every set of heads that can be built, with one head of fine-tuned models at most, without those of `left_out`, and without
    `next_token`, which has no parameters. The tensors of `regressor` and `multilabel` are those of `classifier`."""
    some = [name for name in heads.BUILT_IN if name in MODEL.head_names]
    some = [name for name in some if name not in ("rtd", "next_token", "regressor", "multilabel", *left_out.split())]
    every = [chosen for size in range(len(some) + 1) for chosen in itertools.combinations(some, size)]
    needs = lambda chosen: "pooler" in chosen or not {"classifier", "choice", "next_sentence"} & set(chosen)
    return [chosen for chosen in every if needs(chosen) and len({"classifier", "choice", "tags"} & set(chosen)) <= 1]


@pytest.mark.parametrize(
    "file, model, left_out",
    [
        (BertFile("bert", "bert."), MODEL, ""),
        (BertFile("bert", "", gamma=True), dataclasses.replace(MODEL, types=0), ""),
        (BertFile("roberta", "roberta."), ROBERTA, "next_sentence"),
        (GOOGLE_FILE, MODEL, "tags choice"),
    ],
)
def test_the_table_names_every_leaf_once_for_every_set_of_heads(file: BertFile, model: BertConfig, left_out: str) -> None:
    """The heads are found again from the names alone, and a table without one entry is refused."""
    whole = [
        shapes(model, some)
        for some in (("pooler", "mlm", "next_sentence", "classifier", "spans"), ("pooler", "tags"), ("pooler", "choice"))
    ]
    leaves = {path: shape for part in whole for path, shape in part.items()}
    for chosen in subsets(left_out):
        held = {path: shape for path, shape in leaves.items() if path.split("/")[0] in ("embeddings", "encoder", *chosen)}
        table = names.entries(model, chosen, file)
        key_map.check_table(table, held)
        with pytest.raises(ValueError, match="named by no entry"):
            key_map.check_table(table[:-1], held)
        architecture = "BertForMultipleChoice" if "choice" in chosen else "BertForTokenClassification" if "tags" in chosen else ""
        assert names.heads_of([entry.theirs for entry in table], file, architecture) == chosen


@pytest.mark.parametrize("architecture", folders.ARCHITECTURES)
def test_names_and_shapes_are_those_of_transformers(architecture: str) -> None:
    wanted = folders.shapes(architecture)
    tensors = {name: Tensor(name, shape, np.dtype("float32"), lambda: None) for name, shape in wanted.items()}
    found = transformers.read(folders.config(architecture), tensors, Path("config.json"))
    ours = {path: leaf.shape for path, leaf in tree.leaves(parameters(objective_of(runs.run_of(found), None))[0])}
    assert {entry.theirs: entry.transform.their_shape(ours[entry.ours]) for entry in found.entries} == wanted


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
    table = names.entries(dataclasses.replace(MODEL, layers=1), heads, GOOGLE_FILE)
    assert sorted(entry.theirs for entry in table) == sorted(wanted)
    turned = {entry.theirs for entry in table if entry.transform.their_shape((2, 3)) == (3, 2)}
    assert turned == {"cls/seq_relationship/output_weights", "cls/squad/output_weights", "output_weights"}


@pytest.mark.parametrize("architecture", ["BertForSequenceClassification", "BertForTokenClassification", "Unheard", ""])
def test_a_classifier_is_of_texts_beside_a_pooler_unless_the_class_says_otherwise(architecture: str) -> None:
    held = ["bert.pooler.dense.weight", "classifier.weight"]
    head = "tags" if "Token" in architecture else "classifier"
    assert names.heads_of(held, BertFile("bert", "bert."), architecture) == ("pooler", head)
    alone = ("pooler", "classifier") if "Sequence" in architecture else ("tags",)
    assert names.heads_of(held[1:], BertFile("bert", "bert."), architecture) == alone
