"""A model with no, one or two token types, exported: transformers always has a table of them, with a row at least."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from jaxenc.convert import hf
from jaxenc.inference.model import Model
from tests import tiny
from tests.convert import folders

ARCHITECTURES = ("BertForMaskedLM", "RobertaForMaskedLM", "ElectraModel", "ElectraForMaskedLM", "ElectraForPreTraining")


def with_types(architecture: str, types: int, folder: Path) -> Model:
    """A random model of ours, of a class of transformers, with so many token types."""
    run = hf.load(folders.write(folder, folders.tensors(architecture), folders.config(architecture))).config
    run = dataclasses.replace(run, model=dataclasses.replace(run.model, types=types))
    return Model(run, tiny.drawn(run), None)


@pytest.mark.parametrize("types", [0, 1, 2])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_table_has_the_rows_that_the_config_says(architecture: str, types: int, tmp_path: Path) -> None:
    """A row a type, of which no type at all is a row of zeros."""
    ours = with_types(architecture, types, tmp_path / "theirs")
    hf.save(tmp_path / "out", ours)
    (name,) = (name for name in folders.tensors(architecture) if name.endswith("token_type_embeddings.weight"))
    table = folders.read(tmp_path / "out" / "model.safetensors")[name]
    wanted = ours.params["embeddings"]["type"]["table"] if types else np.zeros((1, table.shape[1]), np.float32)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["type_vocab_size"] == max(types, 1)
    np.testing.assert_array_equal(table, wanted)
    assert hf.load(tmp_path / "out").config.model.types == max(types, 1)
