"""Both streams of XLNet against a NumPy float64 forward pass; memory, padding and what cannot be seen; sizes; heads; where it starts."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.families.two_stream import Memory, Query, Rows, TwoStreams
from jaxenc.families.xlnet import sizes
from jaxenc.families.xlnet.model import Xlnet, XlnetConfig
from jaxenc.layers.visible import Visible
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.sharding import partition
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests import tiny
from tests.families import reference_xlnet as reference
from tests.families.reference_bert import dense

MODEL = XlnetConfig(vocab_size=200, width=16, layers=2, heads=2, feed_forward=24, clamp=3, activation="gelu_erf")
ROWS, LENGTH, MEMORY, PREDICTIONS = 4, 7, 5, 3


@functools.cache
def drawn(model: XlnetConfig = MODEL, heads: HeadsConfig = HeadsConfig(("lm",))) -> Any:
    return tiny.drawn(Run(objective=heads, model=model))


def rows(memory: int = MEMORY, seed: int = 0) -> dict[str, Any]:
    """Arguments of the network: any order, both directions, three types, memory that is not all real; each place sees itself."""
    random = np.random.default_rng(seed)
    sees = random.random((ROWS, LENGTH, memory + LENGTH)) < 0.6
    at = np.argsort(random.random((ROWS, LENGTH)), axis=1)[:, :PREDICTIONS].astype(np.int32)
    query = np.take_along_axis(sees, at[:, :, None], axis=1)
    query[:, np.arange(PREDICTIONS), memory + np.arange(PREDICTIONS)] = True
    states = random.normal(0, 1, (ROWS, MODEL.layers, memory, MODEL.width)).astype(np.float32)
    return {
        "tokens": random.integers(9, MODEL.vocab_size, (ROWS, LENGTH)).astype(np.int32),
        "types": random.integers(0, 3, (ROWS, LENGTH)).astype(np.int32),
        "direction": np.array([1, -1, 1, -1], np.int32),
        "memory": Memory(states, np.array([MEMORY, 2, 0, 1], np.int32)) if memory else None,
        "sees": sees | np.eye(LENGTH, memory + LENGTH, memory, dtype=bool),
        "query": Query(at, query),
    }


@functools.cache
def compiled(model: XlnetConfig, scan: bool) -> Any:
    """Once for each network and each set of arguments: compiling is what these tests take their time for."""
    network = Xlnet(model, tiny.execution(scan=scan))
    return jax.jit(lambda params, given, noise: network.apply({"params": params}, Rows(**given), noise, all_layers=True))


def run(given: dict[str, Any], model: XlnetConfig = MODEL, noise: rng.Keys | None = None, scan: bool = False) -> TwoStreams:
    """All layers of both streams."""
    return compiled(model, scan)(drawn(model), given, noise)


@pytest.mark.parametrize("memory, changes", [(MEMORY, {}), (0, {"clamp": 0, "activation": "gelu_tanh"})])
def test_equals_the_reference(memory: int, changes: dict[str, Any]) -> None:
    """<= 2e-5 in every state of both streams, all of the order of 1, float32 against float64, which is given real memory only."""
    config = dataclasses.replace(MODEL, **changes)
    given, wide = rows(memory), jax.tree.map(np.float64, drawn(config))
    got = run(given, config)
    for row in range(ROWS):
        real = int(given["memory"].filled[row]) if memory else 0
        states = given["memory"].states[row, :, memory - real :] if memory else np.zeros((config.layers, 0, config.width))
        sees, query_sees = given["sees"][row, :, memory - real :], given["query"].sees[row, :, memory - real :]
        one = (given["tokens"][row], given["types"][row], given["direction"][row], states, sees)
        content, query = reference.encode_row(wide, config, *one, given["query"].at[row], query_sees)
        np.testing.assert_allclose(got.content[:, row], content, rtol=0, atol=2e-5)
        np.testing.assert_allclose(got.query[:, row], query, rtol=0, atol=2e-5)
        np.testing.assert_array_equal(got.inputs[row], got.content[:-1, row])


def test_two_segments_with_memory_are_one_long_segment() -> None:
    """<= 1e-5 in both streams, in both directions, where the first segment does not see the second."""
    first, second = rows(0, 1), rows(0, 2)
    first["types"] = np.zeros_like(first["types"])
    ahead = np.ones((ROWS, LENGTH, LENGTH), bool)
    long = {name: np.concatenate([first[name], second[name]], axis=1) for name in ("tokens", "types")}
    halves = [np.concatenate(pair, axis=2) for pair in ((first["sees"], ~ahead), (ahead, second["sees"]))]
    query = Query(second["query"].at, np.concatenate([ahead[:, :PREDICTIONS], second["query"].sees], axis=2))
    long |= {"direction": first["direction"], "memory": None, "sees": np.concatenate(halves, axis=1)}
    whole = run({**long, "query": Query(query.at + LENGTH, query.sees)})
    before = run(first)
    # Two places that are not real stand before it, to be seen by none.
    states = jnp.pad(before.inputs, ((0, 0), (0, 0), (2, 0), (0, 0)), constant_values=9.0)
    hidden = lambda sees: np.pad(sees, ((0, 0), (0, 0), (2, 0)), constant_values=True)
    memory = {"memory": Memory(states, np.full(ROWS, LENGTH, np.int32)), "sees": hidden(halves[1])}
    after = run(second | memory | {"query": Query(query.at, hidden(query.sees))})
    np.testing.assert_allclose(before.content, whole.content[:, :, :LENGTH], rtol=0, atol=1e-5)
    np.testing.assert_allclose(after.content, whole.content[:, :, LENGTH:], rtol=0, atol=1e-5)
    np.testing.assert_allclose(after.query, whole.query, rtol=0, atol=1e-5)


@functools.cache
def felt() -> Any:
    """Compiled: ((gradient by parameters, by the states of memory), all layers) of (parameters, states, arguments), without dropout."""
    network = Xlnet(MODEL, tiny.execution())

    def loss(params: Any, states: jax.Array, given: dict[str, Any]) -> tuple[jax.Array, TwoStreams]:
        memory = {"memory": Memory(states, given["memory"].filled)}
        found = network.apply({"params": params}, Rows(**given | memory), None, all_layers=True)
        return jnp.sum(found.content[-1] ** 3) + jnp.sum(found.query[-1] ** 3), found

    return jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))


def test_memory_that_is_not_filled_is_nothing() -> None:
    """Its gradient is exactly zero, that of filled memory is not; a row without any equals one without memory (<= 1e-6)."""
    given = rows()
    (_, slope), with_memory = felt()(drawn(), given["memory"].states, given)
    slope = np.abs(slope).max(axis=(1, 3))
    real = np.arange(MEMORY) >= MEMORY - given["memory"].filled[:, None]
    assert (slope[~real] == 0).all() and (slope[real] > 0).all()
    without = given | {"memory": None, "sees": given["sees"][:, :, MEMORY:]}
    query = Query(given["query"].at, given["query"].sees[:, :, MEMORY:])
    none = run(without | {"query": query})
    row = int(np.argmin(given["memory"].filled))
    np.testing.assert_allclose(with_memory.content[:, row], none.content[:, row], rtol=0, atol=1e-6)
    np.testing.assert_allclose(with_memory.query[:, row], none.query[:, row], rtol=0, atol=1e-6)


def test_a_query_that_sees_nothing_reads_nothing() -> None:
    """Query 0 of each row, in every layer: the same for any row, memory and direction, bit for bit, and the reference's to 2e-5. All
    gradients are finite; the other queries are as they were, bit for bit."""
    given = rows()
    blind = given | {"query": Query(given["query"].at, given["query"].sees & (np.arange(PREDICTIONS) > 0)[:, None])}
    slopes, found = felt()(drawn(), given["memory"].states, blind)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((slopes, found)))
    alone = np.asarray(found.query[:, :, 0])
    np.testing.assert_array_equal(alone, np.broadcast_to(alone[:, :1], alone.shape))
    nothing = jax.tree.map(np.float64, drawn()), MODEL, [9], [0], 1, np.zeros((MODEL.layers, 0, MODEL.width)), np.ones((1, 1), bool)
    wanted = reference.encode_row(*nothing, [0], np.zeros((1, 1), bool))[1]
    np.testing.assert_allclose(alone[:, 0], wanted[:, 0], rtol=0, atol=2e-5)
    seeing = felt()(drawn(), given["memory"].states, given)[1]
    np.testing.assert_array_equal(found.query[:, :, 1:], seeing.query[:, :, 1:])
    assert (found.query[1:, :, 0] != seeing.query[1:, :, 0]).any(axis=-1).all()


NOISE = rng.training(0, jnp.int32(4), ROWS)


def total(network: Xlnet, params: Any, given: dict[str, Any]) -> jax.Array:
    found = network.apply({"params": params}, Rows(**given), NOISE)
    return jnp.sum(found.query**3) + jnp.sum(found.content**3)


def test_scanned_layers_change_nothing() -> None:
    """<= 1e-5 in every layer of both streams with dropout on: one other mask would show."""
    for scanned, unrolled in zip(*(jax.tree.leaves(run(rows(), noise=NOISE, scan=scan)) for scan in (True, False)), strict=True):
        np.testing.assert_allclose(scanned, unrolled, rtol=0, atol=1e-5)


def test_devices_share_rows_and_heads() -> None:
    """The gradients of one device (<= 1e-5), dropout on, whether blocks or attention are computed again; and within the layers nothing but
    sums goes from one of eight devices to another."""
    blocks = jax.jit(jax.grad(functools.partial(total, Xlnet(MODEL, tiny.execution("block", scan=True)))))(drawn(), rows())
    shapes, names = parameters(tiny.objective(HeadsConfig(("lm",)), MODEL))
    mesh = tiny.mesh("fsdp_tp", 8)
    with jax.set_mesh(mesh):
        stored = partition.shardings(shapes, names, mesh, "fsdp_tp")
        given = jax.device_put((drawn(), rows()), (stored, partition.batch_sharding(mesh)))
        whole = lambda params, given: total(Xlnet(MODEL, tiny.execution("attention", scan=True)), partition.gather(params, stored), given)
        step = jax.jit(jax.grad(whole)).lower(*given).compile()
        tiny.assert_close(jax.device_get(step(*given)), blocks, 1e-5)
    moved = [line for line in step.as_text().splitlines() if re.search(r" (all-gather|all-to-all|collective-permute)(-start)?\(", line)]
    assert moved and all("sharding_constraint" in line for line in moved), moved


def test_the_content_stream_does_not_know_the_query_stream() -> None:
    """Exact for another query in one program, <= 1e-5 in the program without one; with dropout on, which moves it."""
    given, other = rows(), rows(seed=1)
    both, moved, alone = (run(given | {"query": query}, noise=NOISE) for query in (given["query"], other["query"], None))
    assert alone.query is None and np.abs(both.content - run(given).content).max() > 0.1
    assert np.abs(moved.query - both.query).max() > 0.1
    np.testing.assert_array_equal(moved.content, both.content)
    np.testing.assert_allclose(alone.content, both.content, rtol=0, atol=1e-5)


def test_where_dropout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every site of the published code, apart in each stream; on the distances once, the same whichever rows there are."""
    asked: list[tuple[str, int, str]] = []

    def words(keys: rng.Keys, site: str, layer: int = 0) -> Any:
        asked.append((site, int(layer), "rows" if keys.rows is not NOISE.rows else "content" if keys.base is NOISE.base else "query"))
        assert site != "distances" or np.array_equal(keys.rows, [0, 1])
        return plain(keys, site, layer)

    plain = rng.Keys.words
    monkeypatch.setattr(rng.Keys, "words", words)
    jax.eval_shape(lambda params, given: total(Xlnet(MODEL, tiny.execution()), params, given), drawn(), rows())
    inside = ("attention_weights", "attention_output", "feed_forward_inner", "feed_forward_output")
    sites = [(site, layer) for site in inside for layer in range(2)] + [("embeddings", 0), ("final", 0)]
    assert sorted(asked) == sorted([*((*site, stream) for site in sites for stream in ("content", "query")), ("distances", 0, "rows")])


HEADS = HeadsConfig(("summary", "lm", "classifier", "tags", "spans"), ("a", "b", "c"))


def texts(before: int, after: int) -> dict[str, np.ndarray]:
    """Three texts of 6, 4 and 1 tokens with so many places of padding before the longest and after it."""
    batch, fields = tiny.batch([6, 4, 1], 6, seed=3), ("tokens", "types", "segments", "positions")
    cut = [{name: batch[name][row, :length] for name in fields} for row, length in enumerate((6, 4, 1))]
    padding = lambda text: (before + 6 - len(text), after) if before else (0, after + 6 - len(text))
    return {name: np.stack([np.pad(text[name], padding(text[name])) for text in cut]) for name in cut[0]}


def test_heads_and_padding_on_either_side() -> None:
    """Every output at real places is the same (<= 1e-6) padded right, further right, or left; the summary is of the last token."""
    objective, params = tiny.objective(HEADS, MODEL), drawn(heads=HEADS)
    lengths, found, outputs = (6, 4, 1), [], jax.jit(objective.outputs)
    for before, after in ((0, 0), (0, 3), (3, 0)):
        batch = texts(before, after)
        got = outputs(params, batch)
        real = batch["segments"] > 0
        tokens = {name: np.asarray(got[name])[..., real, :] for name in ("hidden", "lm", "tags", "spans")}
        found.append(tokens | {name: np.asarray(got[name]) for name in ("pooled", "classifier")})
        last = [np.flatnonzero(row)[-1] for row in real]
        wanted = reference.summary(params["summary"], np.float64(got["hidden"][-1]), last)
        np.testing.assert_allclose(got["pooled"], wanted, rtol=0, atol=1e-5)
    assert found[0]["hidden"].shape == (3, sum(lengths), 16) and found[0]["lm"].shape == (sum(lengths), 200)
    for other in found[1:]:
        for name, value in other.items():
            np.testing.assert_allclose(value, found[0][name], rtol=1e-6, atol=1e-6, err_msg=name)
    logits = found[0]["hidden"][-1] @ params["embeddings"]["token"]["table"][:200].T + params["lm"]["bias"][:200]
    np.testing.assert_allclose(found[0]["lm"], logits, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[0]["classifier"], dense(found[0]["pooled"], params["classifier"]["dense"]), rtol=0, atol=1e-5)


def test_training_reads_what_outputs_read_wherever_padding_is() -> None:
    """The classifier's loss of texts padded left and right (<= 1e-6 apart)."""
    objective, params = tiny.objective(HEADS, dataclasses.replace(MODEL, dropout=0.0, attention_dropout=0.0)), drawn(heads=HEADS)
    labels = {"label": np.array([0, 2, 1]), "start": np.full(3, -1), "end": np.full(3, -1)}
    keys = rng.training(0, jnp.int32(0), 3)

    def loss(batch: dict[str, np.ndarray]) -> jax.Array:
        terms, _, _ = objective.terms(params, {}, batch, keys, True)
        return terms["classifier"]

    left, right = (jax.jit(loss)({**texts(*sides), **labels, "tags": np.full((3, 8), -1)}) for sides in ((2, 0), (0, 2)))
    assert abs(float(left - right)) <= 1e-6


@pytest.mark.parametrize("name, body, whole", [("base", 116_718_336, 116_750_336), ("large", 360_268_800, 360_300_800)])
def test_published_sizes(name: str, body: int, whole: int) -> None:
    """The transformer, and with the bias of the head."""
    config = sizes.xlnet(*sizes.XLNET[name])
    shapes, _ = parameters(tiny.objective(HeadsConfig(("lm",)), config))
    assert parameter_count(shapes, config.vocab_size, ("lm/bias",)) == whole
    assert parameter_count({part: shapes[part] for part in ("embeddings", "encoder")}, config.vocab_size, ()) == body


def test_the_tree() -> None:
    shapes, names = parameters(tiny.objective(HeadsConfig(("lm",)), MODEL))
    held = {path: leaf.shape for path, leaf in tree.leaves(shapes) if "layer_01" not in path}
    attention, below = "encoder/layer_00/attention", "encoder/layer_00/feed_forward"
    assert held == {
        **{f"{attention}/{kernel}/kernel": (16, 16) for kernel in ("query", "key", "value", "relative", "output")},
        **{f"{attention}/{bias}_bias": (16,) for bias in ("content", "position", "segment")},
        **{f"{part}/norm/{leaf}": (16,) for part in (attention, below) for leaf in ("scale", "bias")},
        **{f"{below}/up/kernel": (16, 24), f"{below}/up/bias": (24,), f"{below}/down/kernel": (24, 16), f"{below}/down/bias": (16,)},
        **{f"{attention}/segment/table": (2, 16), "embeddings/token/table": (256, 16), "embeddings/mask": (16,), "lm/bias": (256,)},
    }
    spread = {path: axes for path, axes in tree.leaves(names) if path.startswith(attention)}
    assert spread[f"{attention}/relative/kernel"] == ("embed", "heads") and spread[f"{attention}/output/kernel"] == ("heads", "embed")
    assert spread[f"{attention}/position_bias"] == ("heads",) and spread[f"{attention}/segment/table"] == (None, "heads")


def test_where_it_starts() -> None:
    """Normal draws of 0.02, biases of attention and labels too (within 10 %); the query's start is uniform to sqrt(6 / (1 + width))."""
    config = dataclasses.replace(sizes.xlnet(1, 512), vocab_size=200)
    objective = tiny.objective(HeadsConfig(("lm",)), config)

    @jax.jit
    def drawn(key: jax.Array) -> tuple[dict, dict]:
        """What is looked at below: the rest of the network is not compiled."""
        params = nn.meta.unbox(objective.init(key))
        return params["encoder"]["layer_00"]["attention"], params["embeddings"]

    attention, embeddings = drawn(rng.init_key(0))
    mask = embeddings["mask"]
    biases = np.concatenate([attention[f"{name}_bias"] for name in ("content", "position", "segment")])
    for leaf in (attention["relative"]["kernel"], attention["segment"]["table"], biases, embeddings["token"]["table"][:200]):
        assert abs(np.std(leaf) / 0.02 - 1) <= 0.1
    bound = np.sqrt(6 / 513)
    assert np.abs(mask).max() <= bound and abs(np.std(mask) * np.sqrt(3) / bound - 1) <= 0.1


def test_work_grows_with_memory_and_predictions() -> None:
    """Against a count of every product of one layer."""
    length, before, predictions, width, inner = 7, 5, 3, 16, 24
    queries, keys = length + predictions, before + length
    products = [(queries, width, width)] * 2 + [(keys, width, width)] * 2 + [(queries, width, inner)] * 2 + [(queries, width, keys)] * 3
    expected = MODEL.layers * sum(2 * a * b * c for a, b, c in products)
    assert Xlnet(MODEL, tiny.execution()).forward_flops(length, before, predictions) == expected


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"heads": 3}, "model.width 16 does not divide into model.heads 3"),
        ({"width": 15, "heads": 3}, "model.width is 15; it takes an even number"),
        ({"clamp": -1}, "model.clamp is -1; it is at least 0"),
        ({"dropout": 1.0}, "model.dropout is 1.0"),
        ({"activation": "gelu"}, "model.activation is 'gelu'"),
    ],
)
def test_refusals_name_the_field(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"[.]")):
        dataclasses.replace(MODEL, **changes)


def test_heads_of_other_families_are_refused() -> None:
    with pytest.raises(
        UserError, match="pooler is not a head of model.kind xlnet; use lm, summary, classifier, regressor, multilabel, choice, tags, spans"
    ):
        tiny.objective(HeadsConfig(("pooler",)), MODEL)
    for other in (tiny.MODEL, tiny.PAIR):
        with pytest.raises(UserError, match=f"lm is not a head of model.kind {other.kind}; use pooler, mlm"):
            tiny.objective(HeadsConfig(("lm",)), other)
    with pytest.raises(ValueError, match="a bias is not a boolean mask"):
        Visible.by_bias(np.zeros((1, 1, 2, 2))).pairs(2)
