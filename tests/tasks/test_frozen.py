"""Fine-tuning with a frozen encoder, by the normal training loop."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.checkpoint import arrays
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.both_directions import BothDirections
from jaxenc.inference import inputs, load
from jaxenc.inference.model import Model
from jaxenc.objectives.probe import FrozenConfig, ProbeConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks import framing
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.tagged import Tagged
from jaxenc.tasks.tuning import FineTune, TuneConfig, objective_of
from jaxenc.training.accumulate import combine
from jaxenc.training.state import parameters
from tests import tiny
from tests.inference import probing
from tests.selection import thinned

FROZEN = FrozenConfig("bilstm", penalty=0.5, dropout=0.5, cells=5)
TRAIN = TuneConfig(steps=3, batch=8, length=12, lengths=(12,))
OPTIM = OptimConfig(lr=0.1, warmup=0, weight_decay=0.5, decay_exclude=())


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(["bert", "elmo"], "bert"))
def test_the_encoder_does_not_change_by_a_bit(kind: str, tmp_path: Path) -> None:
    """After three steps with a large rate and weight decay: the encoder of the checkpoint is that of the model, there are no moments of it,
    and every parameter of the probe has moved. The model loads, and gives its tags. One of the two is evaluated."""
    start = probing.saved(kind, tmp_path / "model")
    dev = str(probing.tagged(5, tmp_path / "dev.txt")) if kind == "elmo" else ""
    data = FilesConfig(train=str(probing.tagged(24, tmp_path / "train.txt")), dev=dev)
    with tiny.on_one_device():
        found = finetune(FineTune(Tag(scheme="none"), data=data, train=TRAIN, frozen=FROZEN, optim=OPTIM), str(start), tmp_path / "out")
    assert not found.failed and ("accuracy" in found.summary) == bool(dev)
    before, after = load.load(start), load.load(tmp_path / "out" / "seed_0")
    shared = dict(tree.leaves({name: branch for name, branch in before.params.items() if name != "mlm"}))
    trained = dict(tree.leaves({"probe": after.params["probe"]}))
    assert dict(tree.leaves(after.params)).keys() == shared.keys() | trained.keys() and len(shared) > 8
    for path, leaf in shared.items():
        np.testing.assert_array_equal(np.asarray(dict(tree.leaves(after.params))[path]), np.asarray(leaf), err_msg=path)
    fresh = jax.tree.map(np.asarray, _fresh(after))
    assert all(np.abs(np.asarray(leaf) - fresh[path]).max() > 1e-3 for path, leaf in trained.items())
    stored = arrays.stored(tmp_path / "out" / "seed_0" / "checkpoints" / "3" / "state")
    held = lambda part: {path.removeprefix(f"{part}/") for path in stored if path.startswith(f"{part}/")}
    assert held("params") == trained.keys() and held("frozen") == shared.keys()
    assert len(held("moments")) == 2 * len(trained) + 1  # two of Adam for each, and its count
    rows, _ = inputs.of_words(after.config.model, after.tokenizer, [["the", "fox"]])
    assert after.apply(after.params, rows)["tags"].shape == (1, rows["tokens"].shape[1], 4)


def _fresh(model: Model) -> dict[str, jax.Array]:
    """{path: initial value} of the probe of seed 0."""
    boxed = model.objective.init(rng.init_key(0))["probe"]
    values = jax.tree.map(lambda box: box.value, boxed, is_leaf=lambda leaf: hasattr(leaf, "names"))
    return dict(tree.leaves({"probe": values}))


def test_the_penalty_is_the_same_for_any_split_of_the_batch() -> None:
    """0.5 · the squares of the mix's weights beside the mean cross-entropy, for a batch whole and in halves (<= 1e-6); with dropout off in
    evaluation."""
    config = ProbeConfig("linear", penalty=0.5, dropout=0.3, labels=("a", "b", "c"))
    objective = tiny.objective(config, tiny.MODEL)
    params = tiny.filled(parameters(objective)[0], objective, tiny.MODEL.vocab_size)
    batch = {**tiny.batch((12, 7, 3, 5), 12), "tags": np.random.default_rng(0).integers(-1, 3, (4, 12)).astype(np.int32)}
    keys = rng.training(0, jnp.int32(0), 4)

    @jax.jit
    def sums(batch, rows):
        given = dataclasses.replace(keys, rows=rows)
        return [objective.terms(params, {}, batch, given, train)[0] for train in (False, True)], objective.weights(batch)

    (still, noisy), weights = sums(batch, keys.rows)
    parts = [sums({name: array[part] for name, array in batch.items()}, keys.rows[part]) for part in (slice(0, 2), slice(2, 4))]
    added = jax.tree.map(lambda a, b: a + b, *parts)
    for ours, whole in ((added[0][0], still), (added[0][1], noisy)):
        assert abs(float(combine(objective, ours, added[1]) - combine(objective, whole, weights))) <= 1e-6
    assert abs(float(still["tags"] - noisy["tags"])) > 1e-3
    squares = 0.5 * np.square(params["probe"]["mix"]["weights"]).sum()
    assert float(combine(objective, still, weights)) == pytest.approx(squares + float(still["tags"]) / float(weights["tags"]), rel=1e-6)
    slopes = jax.jit(jax.grad(lambda p: combine(objective, objective.terms(p, {}, batch, keys, True)[0], weights)))(params)
    moved = {path.split("/")[0] for path, slope in tree.leaves(slopes) if np.abs(slope).max() > 0}
    assert moved == {"probe"}


@pytest.mark.parametrize("kind", MODELS)
def test_every_family_gives_features(kind: str) -> None:
    """Of the shape that the probe is built for, and logits of texts; shapes only."""
    small = lambda model: dataclasses.replace(model, layers=1) if "layers" in vars(model) else model
    model = small(MODELS[kind]())
    if kind == "pair":
        model = dataclasses.replace(model, generator=small(model.generator), discriminator=small(model.discriminator))
    objective = tiny.objective(ProbeConfig("bilstm", head="classifier", labels=("a", "b")), model)
    shapes = {"characters": jax.ShapeDtypeStruct((2, 8, 50), jnp.uint16)}
    row = {name: shapes.get(name, jax.ShapeDtypeStruct((2, 8), jnp.int32)) for name in objective.reads}
    found = jax.eval_shape(objective.outputs, parameters(objective)[0], row)
    width = 2 * model.width if isinstance(model, BothDirections) else model.width
    assert found["hidden"].shape == (model.layers + 1, 2, 8, width) and found["classifier"].shape == (2, 2)


def test_words_are_spelled_as_the_model_reads_them() -> None:
    """Rows of sentences and of texts for a model that reads characters are those of `inference.inputs`, words that its vocabulary does not
    have included; a sentence that is too long is cut into windows."""
    model = probing.model("elmo")
    given = framing.Framing(model.tokenizer, model.config.model, 9)
    words = [["the", "zebra"], ["naïve", "Ünseen", "dog", "quick"], ["a"]]
    wanted, _ = inputs.of_words(model.config.model, model.tokenizer, words)
    found = given.rows([(given.ids_of_words(one)[0],) for one in words]).rows
    texts = given.rows([(ids,) for ids in given.ids([" ".join(one) for one in words])]).rows
    length = wanted["tokens"].shape[1]
    for name, array in wanted.items():
        if name != "positions":
            np.testing.assert_array_equal(found[name][:, :length], array, err_msg=name)
            np.testing.assert_array_equal(texts[name][:, :length], array, err_msg=name)
    assert not found["characters"][:, length:].any()
    long = Tagged("0", "file:1", tuple(f"w{i}" for i in range(20)), ("NOUN", "VERB") * 10)
    features = Tag(scheme="none").fitted([long]).features([long], given)
    whole, _ = inputs.of_words(model.config.model, model.tokenizer, [long.words])
    for row, place in zip(features.rows["characters"], features.places, strict=True):
        np.testing.assert_array_equal(row[place.at], whole["characters"][0, place.words + 1])


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: FrozenConfig("lstm"), "use linear or bilstm"),
        (lambda: FrozenConfig("linear", layer=-2), "frozen.layer is -2"),
        (lambda: FrozenConfig("linear", dropout=1.0), "frozen.dropout is 1.0"),
        (lambda: FineTune(Classify(), frozen=FrozenConfig(layer=2)), "frozen.reader is not set"),
        (lambda: tiny.objective(ProbeConfig("linear", layer=3, labels=("a", "b"))), "the layer is 3, and the model has 2 layers"),
        (lambda: tiny.objective(ProbeConfig("linear", head="mlm", labels=("a", "b"))), "objective.head is 'mlm'"),
        (lambda: tiny.objective(ProbeConfig("linear")), "objective.labels is empty"),
        (lambda: tiny.objective(ProbeConfig("", labels=("a", "b"))), "objective.reader is ''"),
        (lambda: ProbeConfig(cells=0), "objective.cells is 0"),
    ],
)
def test_what_cannot_be_is_one_line(make, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


@pytest.mark.parametrize("task", [Classify(labels=("a", "b")), Tag(labels=("O", "B-a"))])
def test_elmo_without_a_reader_is_told_of_one(task: Classify | Tag) -> None:
    with pytest.raises(UserError, match=r"^elmo models have no heads to fine-tune with; train a reader .* --config tasks/frozen, or"):
        objective_of(FineTune(task), MODELS["elmo"]())
