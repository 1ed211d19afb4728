"""Damaged settings: config.json of transformers, options.json of AllenNLP, and overrides on the command line."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc import config
from jaxenc.cli import recipe as cli
from jaxenc.convert import allennlp, hf, runs
from jaxenc.errors import UserError
from jaxenc.families.elmo import options
from jaxenc.formats import tensor
from jaxenc.training.run import Run
from tests.convert import folders
from tests.families.elmo import folders as elmo
from tests.safety.damage import ODD, Edits, altered, bounded, byte_edits, damaged, dumped, fuzzed, json_edits

ARCHITECTURES = ("BertForPreTraining", "ElectraForPreTraining", "XLNetLMHeadModel")
TENSORS = {
    name: {key: tensor.Tensor(key, value.shape, value.dtype, value.copy) for key, value in folders.tensors(name).items()}
    for name in ARCHITECTURES
}


@fuzzed(700)
@given(name=st.sampled_from(ARCHITECTURES), edits=json_edits())
def test_config_json(tmp_path_factory: pytest.TempPathFactory, name: str, edits: Edits) -> None:
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_bytes(dumped(altered(folders.config(name), edits)))
    with bounded():
        data = hf._config(path)
        assert isinstance(runs.run_of(hf.LAYOUTS[data["model_type"]].read(data, TENSORS[name], path)), Run)


@fuzzed(600)
@given(edits=json_edits())
def test_options_json(edits: Edits) -> None:
    data = altered(elmo.options(), edits)
    with bounded():
        if isinstance(data, dict):
            assert options.model_of(data, Path("options.json")).layers > 0


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound folder, once opened: the first use of a device takes more memory than a damaged input may."""
    folder = elmo.write(tmp_path_factory.mktemp("published"), elmo.options(), elmo.arrays())
    allennlp.load(folder)
    return folder


@fuzzed(120)
@given(edits=json_edits())
def test_options_beside_their_weights(published: Path, edits: Edits) -> None:
    """A number in the options that the weights do not have is named, however large: nothing is made of it before."""
    (published / "options.json").write_bytes(dumped(altered(elmo.options(), edits)))
    with bounded():
        allennlp.load(published)


FIELDS = sorted(path for path, _ in config.flatten(config.to_dict(Run())))
NO_TUPLES = ("-" * 5000 + "1", "(" * 300, "[1]*9**9", "__import__('os')")
VALUES = [*(str(value)[:3000] for value in ODD if "\0" not in str(value)), *NO_TUPLES, "1,2", "(1", "1e999", "true", "mlm"]
OVERRIDES = st.tuples(st.sampled_from(FIELDS) | st.text(max_size=6), st.sampled_from(VALUES) | st.text(max_size=8))


@fuzzed(400)
@given(items=st.lists(OVERRIDES, min_size=1, max_size=3))
def test_overrides(items: list[tuple[str, str]]) -> None:
    with bounded():
        assert isinstance(cli.resolve("bert/tiny", [f"--config.{path}={text}" for path, text in items]), Run)


@fuzzed(200)
@given(edits=byte_edits())
def test_configs_of_other_runs(tmp_path_factory: pytest.TempPathFactory, edits: Edits) -> None:
    path = tmp_path_factory.getbasetemp() / "run.json"
    path.write_bytes(damaged(dumped(config.to_dict(Run())), edits))
    with bounded():
        assert isinstance(cli.resolve(str(path), []), Run)


@pytest.mark.parametrize("text", NO_TUPLES)
def test_a_tuple_that_is_none(text: str) -> None:
    with pytest.raises(UserError):
        cli.resolve("bert/tiny", [f"--config.phases.steps={text}"])


def test_the_values_of_a_config_are_not_changed_in_place() -> None:
    """What the edits change is a copy: else later inputs would not be what they seem."""
    before = folders.config(ARCHITECTURES[0])
    kept = copy.deepcopy(before)
    altered(before, [("put", 3, None), ("out", 1, 0), ("add", 2, {})])
    assert json.dumps(before) == json.dumps(kept)
