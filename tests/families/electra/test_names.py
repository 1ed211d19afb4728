"""The table of ELECTRA's names against lists written by hand."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jaxenc import tree
from jaxenc.convert import runs
from jaxenc.families.electra import google, names, transformers
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.electra.names import ElectraFile
from jaxenc.formats import key_map
from jaxenc.formats.tensor import Tensor
from jaxenc.inference.network import objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests.convert import folders

PAIR = ElectraConfig(
    vocab_size=folders.VOCAB,
    width=16,
    layers=2,
    heads=2,
    feed_forward=12,
    embedding=6,
    generator_width=8,
    generator_layers=1,
    generator_heads=2,
    generator_feed_forward=10,
    positions=16,
)


def headers(wanted: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    return {name: Tensor(name, shape, np.dtype("float32"), lambda: None) for name, shape in wanted.items()}


def shapes(run: Run) -> dict[str, tuple[int, ...]]:
    return {path: leaf.shape for path, leaf in tree.leaves(parameters(objective_of(run, None))[0])}


@pytest.mark.parametrize("embedding", [folders.EMBEDDING, folders.WIDTH])
@pytest.mark.parametrize("architecture", folders.ELECTRAS)
def test_names_and_shapes_are_those_of_transformers(architecture: str, embedding: int) -> None:
    """With a projection behind the tables and, where they are as wide as the layers, without."""
    wanted = folders.electra(architecture.removeprefix("Electra"), embedding)
    config = folders.config(architecture) | {"embedding_size": embedding}
    found = transformers.read(config, headers(wanted), Path("config.json"))
    ours = shapes(runs.run_of(found))
    key_map.check_table(found.entries, ours)
    assert {entry.theirs: entry.transform.their_shape(ours[entry.ours]) for entry in found.entries} == wanted
    assert ("embeddings_project" in " ".join(wanted)) == (embedding != folders.WIDTH)


def network(base: str, layers: int) -> list[str]:
    """The variables of one network, without its tables (google-research/electra model/modeling.py)."""
    out = [f"{base}embeddings_project/{leaf}" for leaf in ("kernel", "bias")]
    for n in range(layers):
        layer = f"{base}encoder/layer_{n}/"
        dense = [f"attention/self/{part}" for part in ("query", "key", "value")]
        dense += ["attention/output/dense", "intermediate/dense", "output/dense"]
        out += [f"{layer}{name}/{leaf}" for name in dense for leaf in ("kernel", "bias")]
        out += [f"{layer}{name}/LayerNorm/{leaf}" for name in ("attention/output", "output") for leaf in ("gamma", "beta")]
    return out


def tables(base: str) -> list[str]:
    return [
        *(f"{base}embeddings/{table}_embeddings" for table in ("word", "position", "token_type")),
        *(f"{base}embeddings/LayerNorm/{leaf}" for leaf in ("gamma", "beta")),
    ]


@pytest.mark.parametrize("sharing", ["embeddings", "none"])
def test_names_are_those_of_google_research(sharing: str) -> None:
    """run_pretraining.py's variables, each once, and every leaf of the pair once."""
    own = tables("generator/") if sharing == "none" else []
    heads = [f"generator_predictions/{name}" for name in ("dense/kernel", "dense/bias", "LayerNorm/gamma", "LayerNorm/beta", "output_bias")]
    heads += [f"discriminator_predictions/{name}/{leaf}" for name in ("dense", "dense_1") for leaf in ("kernel", "bias")]
    wanted = [*tables("electra/"), *network("electra/", 2), *own, *network("generator/", 1), *heads]
    model = dataclasses.replace(PAIR, sharing=sharing)
    tensors = headers({name: (1, 1) for name in wanted})
    tensors |= headers({f"electra/embeddings/{name}_embeddings": (rows, 6) for name, rows in (("word", 131), ("position", 16))})
    tensors |= headers({"electra/embeddings/token_type_embeddings": (2, 6)})
    tensors |= headers({f"electra/encoder/layer_{n}/intermediate/dense/kernel": (16, 12) for n in range(2)})
    tensors |= headers({"generator/encoder/layer_0/intermediate/dense/kernel": (8, 10)})
    found = google.read({}, tensors, Path("model.ckpt"))
    assert found.structure.model == dataclasses.replace(model, heads=1, generator_heads=1)  # heads are 64 wide, one at least
    assert sorted(entry.theirs for entry in found.entries) == sorted(wanted)
    key_map.check_table(found.entries, shapes(runs.run_of(found)))
    assert not [entry for entry in found.entries if entry.transform.their_shape((2, 3)) == (3, 2)]


def test_a_head_that_a_file_does_not_have_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="no head tags"):
        names.entries(PAIR, "discriminator", ("tags",), ElectraFile("electra/", "electra/", google=True))
    with pytest.raises(ValueError, match="no head next_sentence"):
        names.entries(PAIR, "discriminator", ("next_sentence",), ElectraFile("electra.", "electra."))


def test_a_decoder_may_hold_the_table_again() -> None:
    table = names.entries(PAIR, "generator", ("mlm",), ElectraFile("electra.", "electra."))
    assert [entry.copies for entry in table if entry.copies] == [("generator_lm_head.weight",)]


def test_a_generator_has_its_tables_where_the_checkpoint_has_them() -> None:
    assert names.google_file("generator", tables("electra/")) == ElectraFile("generator/", "electra/", google=True)
    assert names.google_file("generator", tables("generator/")) == ElectraFile("generator/", "generator/", google=True)
