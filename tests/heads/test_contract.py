"""What a head says of itself, and what a registry refuses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import heads, rng
from jaxenc.data.batch import check_fields, check_ranges, empty
from jaxenc.errors import UserError
from jaxenc.heads.contract import Head, Label, registry
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.replaced_mlm import COPY, SOFTMAX
from tests import tiny
from tests.heads import stated

STATED = stated.by_name()
HEAD = Head("score", "text", 1000, lambda setting: nn.Dense(1))
FLOAT = Label("score", "float32")


def loss(logits: jax.Array, labels: dict, counted: jax.Array) -> tuple[jax.Array, dict]:
    return jnp.sum((logits[..., 0] - labels["score"]) ** 2 * counted), {}


def test_every_built_in_head_states_what_it_is() -> None:
    assert STATED.keys() == heads.BUILT_IN.keys(), "each head has a file of its name in tests/heads/built_in"


@pytest.mark.parametrize("name", STATED)
def test_a_built_in_head_keeps_its_site_and_role(name: str) -> None:
    """The site seeds initialisation and dropout: with another one an existing run would not resume bit for bit."""
    head = heads.BUILT_IN[name]
    assert (head.site, head.role) == (STATED[name].site, STATED[name].role)
    assert head.site < rng.FIRST_OWN_SITE


def test_the_heads_of_one_objective_keep_their_sites() -> None:
    assert (SOFTMAX.site, COPY.site) == (42, 43)
    assert not {42, 43} & {head.site for head in heads.BUILT_IN.values()}


def test_a_head_draws_from_its_own_number() -> None:
    """The number of a site of the table gives what its name gives."""
    key, keys = rng.init_key(0), rng.training(0, jnp.int32(3), 4)
    data = lambda key: jax.random.key_data(key).tolist()
    assert data(rng.part(key, 36)) == data(jax.random.fold_in(key, 36))
    number = rng.SITES["final"]
    assert data(rng.part(key, number)) == data(rng.part(key, "final")) != data(rng.part(key, number + 1))
    named, numbered, other = (np.stack(keys.words(site)).tolist() for site in ("final", number, number + 1))
    assert named == numbered != other


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"name": "tags"}, "head tags: this name is taken"),
        ({"name": "generator"}, "head generator: this name is taken"),
        ({"site": 33}, "head score: its site 33 is that of mlm; give it a unique number from 1000 to 65535"),
        ({"site": 19}, "its site 19 is that of jaxenc's feed_forward_output"),
        ({"labels": (Label("types"),), "loss": loss}, "its label types has the name of another batch field"),
        ({"labels": (Label("label", "float32"),), "loss": loss}, "its label label has the name of another batch field"),
    ],
)
def test_two_of_one_kind_are_refused(changed: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        heads.with_built_in(dataclasses.replace(HEAD, **changed))


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"role": "token"}, "its role is 'token'; use pools, text, tokens, vocabulary, search"),
        ({"name": "my head"}, "'my head': the name is not a Python identifier"),
        ({"name": "hidden"}, "'hidden': the name is not a Python identifier, or is one of hidden, pooled"),
        ({"site": 0}, "its site is 0; use a number from 1000 to 65535"),
        ({"site": 65536}, "its site is 65536"),
        ({"name": 5}, "5: the name is not a Python identifier"),
        ({"site": 1000.5}, "its site is 1000.5; use a number"),
        ({"module": None}, "its module is None, which cannot be called; give a function"),
        ({"prediction": "likeliest"}, "its prediction is 'likeliest', which cannot be called"),
        ({"labels": FLOAT, "loss": loss}, "give a tuple of Label, (Label(...),) for a single one"),
        ({"labels": ("score",), "loss": loss}, "its labels are ('score',); give a tuple of Label"),
        ({"labels": (Label("score"), Label("score", bound=3)), "loss": loss}, "two of its labels have one name"),
        ({"labels": (Label("score", bound=-1),), "loss": loss}, "has the bound -1; use classes or length or choices or"),
        ({"labels": (FLOAT,)}, "labels or a loss but not both"),
        ({"inputs": (Label("marks", axis="length"),)}, "it has inputs and the role text; set role='search', or leave the inputs out"),
        ({"role": "search", "inputs": "marks"}, "its inputs are 'marks'; give a tuple of Label"),
        ({"role": "search", "inputs": (Label("score"),), "labels": (FLOAT,), "loss": loss}, "two of its labels have one name"),
        ({"loss": loss}, "labels or a loss but not both"),
        ({"labels": (Label("score", "float64"),), "loss": loss}, "its label score is float64 with the axis ''"),
        ({"labels": (Label("score", axis="rows"),), "loss": loss}, "is int32 with the axis 'rows'"),
        ({"labels": (Label("score", bound="labels"),), "loss": loss}, "has the bound 'labels'; use classes or length or choices or"),
        ({"labels": (Label("score", "float32", bound=3),), "loss": loss}, "has the bound 3"),
        ({"labels": (Label("one", axis="length", bound="choices"),), "loss": loss}, "needs the role text and one label a row"),
        ({"role": "tokens", "labels": (Label("one", bound="choices"),), "loss": loss}, "needs the role text and one label a row"),
        (
            {"labels": (FLOAT, Label("other", axis="length")), "loss": loss},
            "its labels have different axes, '' and 'length'; use one axis for all",
        ),
    ],
)
def test_a_head_that_does_not_fit_together_is_one_line(changed: dict, said: str) -> None:
    with pytest.raises(UserError) as error:
        dataclasses.replace(HEAD, **changed)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_what_is_no_head_is_one_line() -> None:
    with pytest.raises(UserError, match="'score' is not a head; give a jaxenc.heads.Head"):
        heads.with_built_in("score")


def test_two_heads_may_learn_from_one_label() -> None:
    one = dataclasses.replace(HEAD, labels=(FLOAT,), loss=loss)
    other = dataclasses.replace(one, name="score_of_tokens", site=1001)
    assert list(registry((one, other))) == ["score", "score_of_tokens"]


def test_a_float_label_is_a_field_of_the_batch() -> None:
    """Float32 in an empty batch, known to the checks, NaN allowed and infinity not."""
    own = heads.with_built_in(dataclasses.replace(HEAD, labels=(FLOAT,), loss=loss))
    objective = tiny.objective(HeadsConfig(("pooler", "score")), heads=own)
    assert objective.reads["score"] == 0 and "score" not in tiny.objective(HeadsConfig(("pooler",)), heads=own).reads
    batch = empty(objective.reads, 3, 7, objective.fields)
    assert batch["score"].dtype == np.float32 and batch["score"].shape == (3,) and batch["tokens"].shape == (3, 7)
    check_fields(batch, objective.reads, objective.fields)
    with pytest.raises(ValueError, match="unknown \\['score'\\]"):
        check_fields(batch, objective.reads)
    batch["score"][:] = (np.nan, -1e30, 2.5)
    check_ranges(batch, objective.reads, objective.fields)
    batch["score"][1] = -np.inf
    with pytest.raises(UserError, match="the rows hold an infinite score; use a finite number"):
        check_ranges(batch, objective.reads, objective.fields)


@pytest.mark.parametrize("name", STATED)
def test_predictions_are_what_an_evaluation_keeps(name: str) -> None:
    """Of a row of two tokens, for three classes."""
    logits = np.array([[[0.0, 2.0, 1.0], [3.0, -1.0, 0.5]]])
    expected = STATED[name].prediction(logits)
    found = np.asarray(heads.BUILT_IN[name].prediction(jnp.asarray(logits, jnp.float32)))
    assert found.dtype == (np.int32 if expected.dtype == np.int32 else np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_flops_are_two_for_each_product_of_a_row() -> None:
    """Forward and backward: the encoder's, and of each head that the loss takes its kernels on what it reads."""
    config = HeadsConfig(("pooler", "mlm", "classifier", "tags", "spans"), ("a", "b", "c"))
    alone, width, length = tiny.objective(HeadsConfig()), tiny.MODEL.width, 20
    of_heads = width * width + width * 3 + length * width * 3 + length * width * 2
    assert tiny.objective(config).flops(length) - alone.flops(length) == 3 * 2 * of_heads
