"""A saved model, opened in Python."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxenc
from jaxenc import config, rng
from jaxenc.checkpoint.config import CheckpointConfig
from jaxenc.checkpoint.manager import Manager
from jaxenc.data.sources import DataConfig
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.pretrained import Model
from jaxenc.run import Run
from jaxenc.train.config import TrainConfig
from jaxenc.train.state import layout
from tests import tiny

TEXT = "the quick brown fox jumps over the lazy dog"


@pytest.fixture(scope="module", params=[MlmConfig, PairConfig], ids=lambda kind: kind.kind)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A run directory with the checkpoints 1 and 2, and the parameters of the second."""
    folder = tmp_path_factory.mktemp("run")
    tokenizer = wordpiece.train([TEXT] * 3, 60)
    tokenizer.save(folder / "tokenizer")
    model = BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=12)
    recipe = Run(objective=request.param(), model=model, data=DataConfig(length=12), train=TrainConfig(precision="float32"))
    recipe = recipe.with_vocabulary(tokenizer.vocabulary)
    files = {"config.json": json.dumps(config.to_dict(recipe)).encode(), "tokenizer": folder / "tokenizer"}
    where = tiny.mesh("dp", 8)
    with jax.set_mesh(where), Manager(folder / "checkpoints", CheckpointConfig()) as checkpoints:
        place = layout(recipe.build(tokenizer.vocabulary, recipe.plan[0], "cpu"), recipe.optim, 8, where, "dp")
        for step in (1, 2):
            state = place.create(rng.init_key(step))
            checkpoints.save(step, state, files)
    return folder, jax.device_get(state.params)


@pytest.fixture(scope="module")
def model(saved: tuple[Path, dict]) -> Model:
    return jaxenc.load(saved[0])


def test_the_newest_step_opens_and_any_other_by_its_number(saved: tuple[Path, dict], model: Model) -> None:
    """Parameters bitwise, saved on eight devices and opened on one, by the run's directory, by the step and by the step's folder."""
    folder, params = saved
    for opened in (model, jaxenc.load(folder, step=2), jaxenc.load(folder / "checkpoints" / "2")):
        tiny.assert_bitwise(jax.device_get(opened.params), params)
        assert all(leaf.devices() == {jax.devices()[0]} for leaf in jax.tree.leaves(opened.params))
    first = jaxenc.load(folder, step=1).params
    assert (first["embeddings"]["token"]["table"] != params["embeddings"]["token"]["table"]).any()


def test_guesses_are_the_softmax_over_the_true_vocabulary(model: Model) -> None:
    """All of them add up to 1, likeliest first, and every piece comes once for each mask; the padding rows of the table never come."""
    size = model.tokenizer.vocabulary.size
    masks = model.fill_mask("the [MASK] brown [MASK]", k=size)
    assert len(masks) == 2
    for guesses in masks:
        probabilities = [guess.probability for guess in guesses]
        assert len({guess.token for guess in guesses}) == size and abs(sum(probabilities) - 1) <= 1e-5
        assert probabilities == sorted(probabilities, reverse=True)
    assert masks[0] != masks[1] and model.fill_mask("the [MASK] brown [MASK]", k=3)[1] == masks[1][:3]


def test_a_guess_follows_the_context(model: Model) -> None:
    one, other = (model.fill_mask(f"the [MASK] {word}")[0][0].probability for word in ("brown", "lazy"))
    assert np.isfinite(one) and one != other


@pytest.mark.parametrize("text, words", [("the fox", "holds no [MASK]"), ("[MASK] " + "the " * 20, "has 23 tokens and the model takes 12")])
def test_a_text_that_cannot_be_asked_is_one_line(text: str, words: str, model: Model) -> None:
    with pytest.raises(UserError) as error:
        model.fill_mask(text)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_folder_without_a_checkpoint_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no valid checkpoint"):
        jaxenc.load(tmp_path)
