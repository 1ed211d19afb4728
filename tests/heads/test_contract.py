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

HEAD = Head("score", "text", 1000, lambda setting: nn.Dense(1))
FLOAT = Label("score", "float32")


def loss(logits: jax.Array, labels: dict, counted: jax.Array) -> tuple[jax.Array, dict]:
    return jnp.sum((logits[..., 0] - labels["score"]) ** 2 * counted), {}


def test_the_built_in_heads_keep_their_sites() -> None:
    """What they draw at initialisation and in dropout follows from these numbers: none may change or be used again."""
    found = {name: (head.site, head.role) for name, head in heads.BUILT_IN.items()}
    wanted = {
        "pooler": (34, "pools"),
        "mlm": (33, "vocabulary"),
        "next_sentence": (35, "text"),
        "rtd": (41, "tokens"),
        "classifier": (36, "text"),
        "tags": (37, "tokens"),
        "spans": (38, "tokens"),
        "lm": (44, "vocabulary"),
        "summary": (45, "pools"),
        "sentence_order": (50, "text"),
        "next_token": (49, "vocabulary"),
        "last_token": (51, "pools"),
        "first_token": (56, "pools"),
        "regressor": (57, "text"),
        "multilabel": (58, "text"),
        "choice": (59, "text"),
        "joint_spans": (60, "search"),
        "beam_spans": (61, "search"),
    }
    assert list(found.items()) == list(wanted.items())
    assert (SOFTMAX.site, COPY.site) == (42, 43) and all(site < rng.FIRST_OWN_SITE for site, _ in found.values())
    assert not {site for site, _ in found.values()} & set(rng.SITES.values())


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


def test_predictions_are_what_an_evaluation_keeps() -> None:
    """Probabilities of a text's classes and of replaced tokens, the likeliest tag and token, the logits of spans; a row each."""
    logits = np.float32([[[0.0, 2.0, 1.0], [3.0, -1.0, 0.5]]])
    odds = np.exp(np.float64(logits))
    expected = {
        "classifier": odds / odds.sum(-1, keepdims=True),
        "next_sentence": odds / odds.sum(-1, keepdims=True),
        "rtd": odds / (1 + odds),
        "tags": np.array([[1, 0]]),
        "mlm": np.array([[1, 0]]),
        "lm": np.array([[1, 0]]),
        "sentence_order": odds / odds.sum(-1, keepdims=True),
        "next_token": np.array([[1, 0]]),
        "last_token": logits,
        "first_token": logits,
        "regressor": logits,
        "multilabel": odds / (1 + odds),
        "choice": odds / odds.sum(-1, keepdims=True),
        "spans": logits,
        "pooler": logits,
        **dict.fromkeys(("summary", "joint_spans", "beam_spans"), logits),
    }
    for name, head in heads.BUILT_IN.items():
        found = np.asarray(head.prediction(jnp.asarray(logits)))
        assert found.dtype == (np.int32 if expected[name].ndim == 2 else np.float32), name
        np.testing.assert_allclose(found, expected[name], rtol=1e-6, atol=1e-7, err_msg=name)


def test_flops_are_two_for_each_product_of_a_row() -> None:
    """Forward and backward: the encoder's, and of each head that the loss takes its kernels on what it reads."""
    config = HeadsConfig(("pooler", "mlm", "classifier", "tags", "spans"), ("a", "b", "c"))
    alone, width, length = tiny.objective(HeadsConfig()), tiny.MODEL.width, 20
    of_heads = width * width + width * 3 + length * width * 3 + length * width * 2
    assert tiny.objective(config).flops(length) - alone.flops(length) == 3 * 2 * of_heads
