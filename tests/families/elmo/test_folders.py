"""ELMo's published folders in and out again, and what is wrong with some."""

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxenc.convert import allennlp, hf
from jaxenc.data.tokenizers import word_list, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import UserError
from jaxenc.inference.model import Model
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.families.elmo import folders

PREFIX = "elmo_2x4096_512_2048cnn_2xhighway_"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write(tmp_path_factory.mktemp("elmo"), folders.options(), folders.arrays(), PREFIX)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return allennlp.load(folder)


def test_where_every_number_goes(model: Model) -> None:
    """Gates side by side as they were; the joint kernels cut behind the rows of the input; a convolution's characters in order."""
    theirs, params = folders.arrays(), model.params
    for direction, number in (("forward", 0), ("backward", 1)):
        for layer in range(2):
            ours, cell = params[direction][f"layer_{layer:02d}"], f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            np.testing.assert_array_equal(ours["input"], theirs[f"{cell}/W_0"][: folders.WIDTH])
            np.testing.assert_array_equal(ours["recurrent"], theirs[f"{cell}/W_0"][folders.WIDTH :])
            np.testing.assert_array_equal(ours["bias"], theirs[f"{cell}/B"])
            np.testing.assert_array_equal(ours["projection"], theirs[f"{cell}/W_P_0"])
    network = params["char_cnn"]
    for i, (width, count) in enumerate(folders.FILTERS):
        ours = np.asarray(network[f"convolution_{i:02d}"]["kernel"]).reshape(width, folders.CHARACTER, count)
        np.testing.assert_array_equal(ours, theirs[f"CNN/W_cnn_{i}"][0])
        np.testing.assert_array_equal(network[f"convolution_{i:02d}"]["bias"], theirs[f"CNN/b_cnn_{i}"])
    for i in range(2):
        for gate in ("carry", "transform"):
            ours = network[f"highway_{i:02d}"][gate]
            np.testing.assert_array_equal(ours["kernel"], theirs[f"CNN_high_{i}/W_{gate}"])
            np.testing.assert_array_equal(ours["bias"], theirs[f"CNN_high_{i}/b_{gate}"])
    np.testing.assert_array_equal(network["projection"]["kernel"], theirs["CNN_proj/W_proj"])
    np.testing.assert_array_equal(network["characters"]["table"], theirs["char_embed"])


CHANGES: dict[str, Callable[[dict], Any]] = {
    "published": lambda data: None,
    "no skip connections": lambda data: data["lstm"].update(use_skip_connections=False),
    "no clips": lambda data: data["lstm"].update(cell_clip=None, proj_clip=None),
    "odd clips": lambda data: data["lstm"].update(cell_clip=2.5, proj_clip=1),
    "tanh": lambda data: data["char_cnn"].update(activation="tanh"),
    "three layers": lambda data: data["lstm"].update(n_layers=3),
    "no highway": lambda data: data["char_cnn"].update(n_highway=0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_in_and_out_again_is_the_identity(change: str, tmp_path: Path) -> None:
    """Options and every bit of the weights."""
    settings = folders.options()
    CHANGES[change](settings)
    values = folders.arrays(settings["lstm"]["n_layers"], settings["char_cnn"]["n_highway"])
    found = allennlp.load(folders.write(tmp_path / "theirs", settings, values))
    allennlp.save(tmp_path / "ours", found)
    assert json.loads((tmp_path / "ours" / allennlp.OPTIONS).read_text()) == settings
    wanted, written = folders.read(tmp_path / "theirs" / "weights.hdf5"), folders.read(tmp_path / "ours" / allennlp.WEIGHTS)
    assert written.keys() == wanted.keys()
    for name, array in written.items():
        assert array.dtype == np.float32 and array.shape == wanted[name].shape and array.tobytes() == wanted[name].tobytes(), name
    tiny.assert_bitwise(allennlp.load(tmp_path / "ours").params, found.params)


def test_what_the_options_say_is_computed(tmp_path: Path) -> None:
    """Every choice changes the numbers: none is read and forgotten."""
    hidden = {}
    for change in ("published", "no skip connections", "no clips", "odd clips", "tanh"):
        settings, values = folders.options(), {name: 3 * array for name, array in folders.arrays().items()}
        CHANGES[change](settings)
        hidden[change] = allennlp.load(folders.write(tmp_path / change, settings, values)).encode(words=[["a", "word", "or", "two"]]).hidden
    kinds = list(hidden.values())
    assert all(np.abs(one - other).max() > 1e-3 for i, one in enumerate(kinds) for other in kinds[:i])


def test_options_of_training(tmp_path: Path) -> None:
    """Characters counted from 0, what bilm-tf leaves out where it is off, and the numbers that only training reads."""
    settings = folders.options() | {"dropout": 0.2, "n_tokens_vocab": 1000, "bidirectional": True, "unroll_steps": 20}
    settings["char_cnn"]["n_characters"] = 261
    for name in ("use_skip_connections", "cell_clip", "proj_clip"):
        del settings["lstm"][name]
    found = allennlp.load(folders.write(tmp_path, settings, folders.arrays())).config.model
    assert (found.dropout, found.vocab_size, found.residual, found.cell_clip, found.projection_clip) == (0.2, 1000, False, 0, 0)


def changed(path: str, value: Any) -> Callable[[dict], None]:
    def change(data: dict) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            data = data[parent]
        data.pop(name) if value is KeyError else data.update({name: value})

    return change


@pytest.mark.parametrize(
    "path, value, told",
    [
        ("lstm.n_layers", 3, "missing: RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0[input]"),
        ("lstm.n_layers", 1, "not known: RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B"),
        ("lstm.n_layers", 10**9, "its config has 1000000000 layers"),
        ("lstm.dim", 11, "of another shape: "),
        ("lstm.projection_dim", 7, "of another shape: "),
        ("lstm.projection_dim", 10**9, "of another shape: "),
        ("lstm.projection_dim", "6", "lstm.projection_dim is '6'; it takes a whole number from 1 on"),
        ("lstm.projection_dim", KeyError, "has no lstm.projection_dim; it takes a whole number from 1 on"),
        ("lstm.cell_clip", 0, "lstm.cell_clip is 0; it takes a number above 0, or null for none"),
        ("lstm.cell_clip", "3", "lstm.cell_clip is '3'; it takes"),
        ("lstm.cell_clip", 10**400, "it takes a number above 0, or null for none"),
        ("lstm.cell_clip", float("nan"), "lstm.cell_clip is nan; it takes"),
        ("lstm.use_skip_connections", 1, "lstm.use_skip_connections is 1; it takes true or false"),
        ("lstm", [1], "has no lstm.projection_dim"),
        ("char_cnn", KeyError, "has no char_cnn; only models in which a word is read by its characters"),
        ("char_cnn.n_characters", 300, "char_cnn.n_characters is 300; it takes 261 or 262"),
        ("char_cnn.max_characters_per_token", 40, "char_cnn.max_characters_per_token is 40; it takes 50"),
        ("char_cnn.activation", "gelu", "char_cnn.activation is 'gelu'; it takes relu or tanh"),
        ("char_cnn.n_highway", 1, "not known: CNN_high_1/W_carry"),
        ("char_cnn.embedding", {"dim": 4}, "char_embed (261, 3), expected (261, 4)"),
        ("char_cnn.filters", [[1, 4], [2, 5]], "not known: CNN/W_cnn_2"),
        ("char_cnn.filters", [[1, 4], [2, 5], [51, 2]], "it takes a list of [characters, filters], at most 50"),
        ("bidirectional", False, "bidirectional is false; only models"),
        ("dropout", 1.5, "dropout is 1.5; it takes a rate"),
    ],
)
def test_options_that_disagree_are_one_line(path: str, value: Any, told: str, folder: Path, tmp_path: Path) -> None:
    settings = copy.deepcopy(folders.options())
    changed(path, value)(settings)
    (tmp_path / "options.json").write_text(json.dumps(settings))
    (tmp_path / "weights.hdf5").symlink_to(folder / f"{PREFIX}weights.hdf5")
    with pytest.raises(UserError) as error:
        allennlp.load(tmp_path)
    assert told in str(error.value) and "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_a_list_of_words_beside_the_weights(folder: Path, tmp_path: Path) -> None:
    """It sets how many words are predicted, and goes out with the model; options that name another number are refused."""
    settings = folders.options()
    folders.write(tmp_path / "theirs", settings, folders.arrays())
    (tmp_path / "theirs" / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\nfox\n")
    found = allennlp.load(tmp_path / "theirs")
    assert found.config.model.vocab_size == 5 and found.tokenizer.vocabulary.size == 5
    assert found.encode(["the fox"]).tokens.tolist() == [[0, 3, 4, 1]]
    allennlp.save(tmp_path / "ours", found)
    assert allennlp.load(tmp_path / "ours").tokenizer.vocabulary == found.tokenizer.vocabulary
    assert allennlp.load(tmp_path / "theirs", "none").tokenizer is None
    (tmp_path / "theirs" / "options.json").write_text(json.dumps(settings | {"n_tokens_vocab": 6}))
    with pytest.raises(UserError, match="n_tokens_vocab is 6 and the list of words has 5"):
        allennlp.load(tmp_path / "theirs")


def test_a_tokenizer_of_pieces_is_refused(folder: Path, tmp_path: Path) -> None:
    wordpiece.train(["the fox"] * 4, 20).save(tmp_path)
    with pytest.raises(UserError, match="the tokenizer cuts words, and here a word is read by its characters"):
        allennlp.load(folder, str(tmp_path))


def test_a_joint_kernel_without_rows_is_one_line(tmp_path: Path) -> None:
    name = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"
    folders.write(tmp_path, folders.options(), folders.arrays() | {name: np.float32(1)})
    with pytest.raises(UserError, match=f"missing: {name}.*not known: {name}"):
        allennlp.load(tmp_path)


def test_places_that_hold_no_elmo(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        allennlp.load(tmp_path / "gone")
    with pytest.raises(UserError, match=r"holds no file whose name ends in options\.json"):
        allennlp.load(tmp_path)
    folders.write(tmp_path, folders.options(), {}, "a_")
    with pytest.raises(UserError, match="its config has 2 layers but there are 0 tensors"):
        allennlp.load(tmp_path)
    folders.write(tmp_path, folders.options(), {}, "b_")
    with pytest.raises(UserError, match=r"holds a_options\.json, b_options\.json"):
        allennlp.load(tmp_path)


def other(model: Model, **numbers: Any) -> Model:
    return dataclasses.replace(model, config=dataclasses.replace(model.config, model=dataclasses.replace(model.config.model, **numbers)))


def test_what_cannot_be_exported(model: Model, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="transformers has no class for a model of kind elmo"):
        hf.save(tmp_path / "out", model)
    for wrong, told in (
        (other(model, input="tokens"), "reads words by their ids"),
        (other(model, forget_bias=0.5), "model.forget_bias is 0.5; AllenNLP computes with 1.0"),
        (Model(Run(), {}, None), "AllenNLP does not open a model of kind bert"),
    ):
        with pytest.raises(UserError, match=told):
            allennlp.save(tmp_path / "out", wrong)
    assert not any(tmp_path.iterdir())


def test_a_softmax_stays_behind(model: Model, folder: Path, tmp_path: Path) -> None:
    """As in the published files; and a model that came without one goes on as one that has it."""
    run = dataclasses.replace(model.config, objective=BilmConfig(), model=dataclasses.replace(model.config.model, vocab_size=20))
    trained = Model(run, {**model.params, "softmax": tiny.drawn(run)["softmax"]}, None)
    np.testing.assert_allclose(trained.encode(words=[["a"]]).hidden, model.encode(words=[["a"]]).hidden, rtol=0, atol=1e-6)
    allennlp.save(tmp_path / "out", trained)
    tiny.assert_bitwise(allennlp.load(tmp_path / "out").params, model.params)


def test_a_tokenizer_of_words(folder: Path, tmp_path: Path) -> None:
    """Characters are a word's own, lower-cased where the list is, whether it is known or not; a text, its words and, where it knows them
    all, its ids give the same."""
    word_list.train(["the fox"], 4, Normalization(lowercase=True)).save(tmp_path)
    found = allennlp.load(folder, str(tmp_path))
    text, split = found.encode(["The Ox"]), found.encode(words=[["the", "oX"]])
    assert text.tokens.tolist() == [[0, found.tokenizer.encode(["the"])[0][0], 2, 1]]
    np.testing.assert_array_equal(text.hidden, split.hidden)
    known = found.encode(words=[["the", "fox"]])
    np.testing.assert_array_equal(found.encode(tokens=known.tokens).hidden, known.hidden)
    assert np.abs(text.hidden - known.hidden).max() > 1e-3
