"""Heads of fine-tuned models: losses against slow NumPy, what they read and what they are made of."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.data.batch import check_ranges
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.states import States
from jaxenc.heads.tags import TAGS
from jaxenc.layers.dropout import dropout
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.heads import Heads, HeadsConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.accumulate import combine
from jaxenc.training.run import Run, from_dict
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import parameters
from tests import tiny
from tests.families.reference_bert import dense

LABELS = ("none", "person", "place")
ALL = HeadsConfig(heads=("pooler", "mlm", "next_sentence", "classifier", "tags", "spans"), labels=LABELS)
LENGTHS = (12, 7, 3, 12, 0)
QUIET = dataclasses.replace(tiny.MODEL, layers=1, dropout=0.0, attention_dropout=0.0)


def rows() -> dict[str, np.ndarray]:
    """Five rows of 12 places, the last one padding: class 1 of row 2 and some tags are not counted, spans lie in and out of the row."""
    random = np.random.default_rng(3)
    tags = random.integers(0, 3, (5, 12)).astype(np.int32)
    tags[0, :4] = tags[3] = -1
    marks = {"label": [2, 0, -1, 1, 0], "start": [1, 0, 12, 3, 0], "end": [4, 6, 2, -1, 0]}
    return {**tiny.batch(LENGTHS, 12), "tags": tags, **{name: np.array(values, np.int32) for name, values in marks.items()}}


@functools.cache
def built(config: HeadsConfig = ALL, model: BertConfig = QUIET) -> tuple[Heads, dict]:
    """(objective, parameters)"""
    return tiny.objective(config, model), jax.tree.map(jnp.asarray, tiny.drawn(Run(objective=config, model=model)))


def cross_entropy(logits: np.ndarray, label: int) -> float:
    logits = np.float64(logits)
    return np.log(np.exp(logits).sum()) - logits[label]


def test_losses_and_weights_are_those_of_loops() -> None:
    """Each head's sum, its count and its right answers, from the last hidden states, one label at a time (<= 1e-5)."""
    objective, params = built()
    batch = rows()
    keys, p = rng.training(0, jnp.int32(0), 5), jax.device_get(params)
    run = jax.jit(lambda params: (objective.outputs(params, batch)["hidden"][-1], *objective.terms(params, {}, batch, keys, False)[:2]))
    hidden, terms, metrics = jax.tree.map(np.float64, run(params))
    pooled = np.tanh(dense(hidden[:, 0], p["pooler"]["dense"]))
    classes, tags, spans = (dense(x, p[name]["dense"]) for x, name in ((pooled, "classifier"), (hidden, "tags"), (hidden, "spans")))
    found: dict[str, list[tuple[float, float]]] = {"classifier": [], "tags": [], "spans": []}
    for i in range(5):
        label, start, end = (batch[name][i] for name in ("label", "start", "end"))
        if LENGTHS[i] and label >= 0:
            found["classifier"].append((cross_entropy(classes[i], label), classes[i].argmax() == label))
        for j in range(LENGTHS[i]):
            if (tag := batch["tags"][i, j]) >= 0:
                found["tags"].append((cross_entropy(tags[i, j], tag), tags[i, j].argmax() == tag))
        if LENGTHS[i] and 0 <= start < 12 and 0 <= end < 12:
            both = [(cross_entropy(spans[i, :, k], at), spans[i, :, k].argmax() == at) for k, at in enumerate((start, end))]
            found["spans"].append(tuple(sum(values) / 2 for values in zip(*both, strict=True)))
    assert {name: len(found[name]) for name in found} == {"classifier": 3, "tags": 18, "spans": 2}
    assert {name: int(count) for name, count in objective.weights(batch).items()} == {name: len(found[name]) for name in found}
    for name, pairs in found.items():
        loss, correct = (sum(values) for values in zip(*pairs, strict=True))
        assert abs(float(terms[name]) - loss) <= 1e-5 * max(loss, 1)
        assert float(metrics[f"{name}_accuracy"][0]) == correct and float(metrics[f"{name}_accuracy"][1]) == len(pairs)


def test_outputs_are_what_the_heads_are_made_of() -> None:
    objective, params = built()
    got = jax.jit(objective.outputs)(params, rows())
    shapes = {"hidden": (2, 5, 12, 32), "pooled": (5, 32), "mlm": (5, 12, 200), "next_sentence": (5, 2), "classifier": (5, 3)}
    assert {name: a.shape for name, a in got.items()} == {**shapes, "tags": (5, 12, 3), "spans": (5, 12, 2)}
    assert {a.dtype for a in got.values()} == {jnp.dtype("float32")}
    p = jax.device_get(params)
    np.testing.assert_allclose(got["spans"], dense(np.float64(got["hidden"][-1]), p["spans"]["dense"]), rtol=0, atol=1e-5)
    np.testing.assert_allclose(got["next_sentence"], dense(np.float64(got["pooled"]), p["next_sentence"]["dense"]), rtol=0, atol=1e-5)


def test_an_unused_head_is_not_computed() -> None:
    """Compiled for one output, logits of the (padded) vocabulary are there for `mlm` and for nothing else."""
    objective, params = built()
    text = lambda name: jax.jit(lambda params: objective.outputs(params, rows())[name]).lower(params).compile().as_text()
    assert {name: "[5,12,256]" in text(name) for name in ("hidden", "tags", "mlm")} == {"hidden": False, "tags": False, "mlm": True}


def test_gradients_reach_the_encoder_and_every_trained_head() -> None:
    """And not the heads without a loss; each row's token vectors move."""
    objective, params = built()
    batch = rows()

    def loss(params: dict) -> jax.Array:
        terms, _, _ = objective.terms(params, {}, batch, rng.training(0, jnp.int32(0), 5), train=True)
        return combine(objective, terms, objective.weights(batch))

    slopes = jax.jit(jax.grad(loss))(params)
    moved = {path: bool(np.abs(slope).max() > 0) for path, slope in tree.leaves(slopes)}
    still = {path.split("/")[0] for path, has in moved.items() if not has}
    assert still == {"mlm", "next_sentence"} and all(np.isfinite(slope).all() for _, slope in tree.leaves(slopes))


def test_dropout_is_on_what_classifier_and_tags_read() -> None:
    """As in transformers: not on the pooled vector that next_sentence reads, nor on spans; none without noise. Each draws from its site."""
    _, params = built()
    hidden, keys = np.random.default_rng(0).normal(0, 1, (5, 12, 32)).astype(np.float32), rng.training(0, jnp.int32(0), 5)
    inputs = (
        tiny.objective(ALL, dataclasses.replace(QUIET, dropout=0.5)).heads,
        params,
        States(hidden, params["embeddings"]["token"]["table"]),
        rows()["segments"],
    )
    still, moved = jax.jit(lambda: [encoders.logits(*inputs, noise) for noise in (None, keys)])()
    same = {name: bool((still[name] == moved[name]).all()) for name in still}
    assert same == {"pooled": True, "mlm": True, "next_sentence": True, "spans": True, "classifier": False, "tags": False}
    read = dropout(hidden, 0.5, keys, TAGS.site)
    np.testing.assert_allclose(moved["tags"], dense(np.float64(read), jax.device_get(params)["tags"]["dense"]), rtol=0, atol=1e-5)
    noisy = tiny.objective(ALL, dataclasses.replace(QUIET, dropout=0.5))
    one, other = jax.jit(lambda params: [noisy.terms(params, {}, rows(), keys, train)[0] for train in (True, False)])(params)
    assert all(abs(float(one[name] - other[name])) > 1e-3 for name in noisy.coef)


def test_parameters_have_the_agreed_paths() -> None:
    objective, _ = built()
    shapes = {path: leaf.shape for path, leaf in tree.leaves(parameters(objective)[0])}
    heads = {path: shape for path, shape in shapes.items() if not path.startswith(("embeddings", "encoder", "mlm"))}
    kernels = {"pooler": (32, 32), "next_sentence": (32, 2), "classifier": (32, 3), "tags": (32, 3), "spans": (32, 2)}
    assert heads == {
        **{f"{name}/dense/kernel": shape for name, shape in kernels.items()},
        **{f"{name}/dense/bias": shape[1:] for name, shape in kernels.items()},
    }
    assert {path for path in shapes if path.startswith("mlm/")} == {
        "mlm/bias", "mlm/dense/bias", "mlm/dense/kernel", "mlm/norm/bias", "mlm/norm/scale"
    }  # fmt: skip


def test_a_head_starts_the_same_with_other_heads_beside_it() -> None:
    """And the encoder as under any other objective: each part draws from a key of its own."""
    configs = (HeadsConfig(("tags",), LABELS), ALL, PairConfig())
    # Draw by draw: most leaves have a shape that another one has, whose draw is then compiled already.
    alone, both, mlm = jax.device_get([tiny.objective(config, QUIET).init(rng.init_key(0)) for config in configs])
    tiny.assert_bitwise(alone["tags"], both["tags"])
    for name in ("embeddings", "encoder", "mlm", "pooler", "next_sentence"):
        tiny.assert_bitwise(both[name], mlm[name])


@pytest.mark.parametrize("field, value", [("tags", 3), ("tags", -2), ("label", 3), ("start", 64)])
def test_labels_that_are_no_class_are_refused(field: str, value: int) -> None:
    """-1 is not counted, and anything below it or past the last class is a mistake in the data."""
    objective, batch = built()[0], rows()
    check_ranges(batch, objective.reads, objective.fields)
    batch[field].flat[0] = value
    with pytest.raises(UserError, match=f"the rows hold {field} from"):
        check_ranges(batch, objective.reads, objective.fields)


@pytest.mark.parametrize(
    "heads, labels, said",
    [
        (("tag",), LABELS, "holds 'tag'; it takes pooler, mlm"),
        (("classifier",), LABELS, "classifier without pooler"),
        (("next_sentence",), (), "next_sentence without pooler"),
        (("tags",), (), "objective.labels is empty"),
        (("pooler", "summary"), (), "holds pooler and summary, and a text has one vector"),
        (("tags", "tags"), LABELS, "name each head once"),
        (("tags",), ("a", "a"), "names a class twice"),
    ],
)
def test_heads_that_do_not_go_together_are_one_line(heads: tuple, labels: tuple, said: str) -> None:
    with pytest.raises(UserError) as error:
        tiny.objective(HeadsConfig(heads, labels))
    assert said in str(error.value) and "\n" not in str(error.value)


def test_heads_without_a_loss_have_no_terms() -> None:
    """One class is no choice either."""
    for config in (HeadsConfig(), HeadsConfig(("pooler", "mlm")), HeadsConfig(("pooler", "classifier"), ("score",))):
        objective = tiny.objective(config)
        assert objective.coef == {} and set(objective.reads) == {"tokens", "types", "positions", "segments"}


def test_a_recipe_names_heads() -> None:
    run = from_dict({"objective": {"kind": "heads", "heads": ["pooler", "classifier"], "labels": ["no", "yes"]}})
    assert run.objective == HeadsConfig(("pooler", "classifier"), ("no", "yes")) and run.plan[0].max_predictions == 0


@pytest.mark.full
def test_heads_train_on_eight_devices_in_parts() -> None:
    """The first loss is the sum of means over the whole batch, whatever the mesh and the parts (<= 1e-5); twenty-five steps halve it."""
    config = HeadsConfig(("pooler", "classifier", "tags", "spans"), LABELS)
    objective = tiny.objective(config, QUIET)
    batch = tiny.batch([48, 9, 30, 4] * 4)
    words = batch["tokens"]
    marks = {"label": words[:, 1] % 3, "start": np.full(16, 1), "end": np.full(16, 2), "tags": np.where(batch["segments"], words % 3, -1)}
    batch = {name: array.astype(np.int32) for name, array in {**batch, **marks}.items() if name in objective.reads}
    train, phase = TrainConfig(batch=16, microbatches=2), tiny.phase(16, steps=25, lr=5e-3)
    ready = tiny.compile_for(objective, OptimConfig(warmup=0), train, phase, tiny.mesh("fsdp_tp", 8), "fsdp_tp")
    with jax.set_mesh(ready.mesh):
        state = ready.start()
        params = jax.device_get(state.all_params)
        reports = []
        for _ in range(25):
            state, report = ready.run(batch, state)
            reports.append(report)
    keys = rng.training(0, jnp.int32(0), 16)
    terms = jax.jit(lambda params: objective.terms(params, {}, batch, keys, train=True)[0])(params)
    want = sum(float(terms[name] / count) for name, count in objective.weights(batch).items())
    assert abs(reports[0]["loss"] - want) <= 1e-5 * want
    assert reports[-1]["loss"] < reports[0]["loss"] / 2 and reports[-1]["skipped"] == 0
