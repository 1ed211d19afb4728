"""The BERT encoder and its heads against a NumPy float64 forward pass, its parameter tree, and what must stay finite."""

import dataclasses
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng, tree
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.stacked import StackedEncoder
from jaxenc.heads.classifier import Classifier
from jaxenc.heads.masked_lm import MlmHead
from jaxenc.heads.pooler import Pooler
from jaxenc.layers.embeddings import Embeddings
from jaxenc.layers.softmax import NEVER
from jaxenc.layers.visible import Visible
from jaxenc.precision import policy
from tests.families import reference_bert as reference

GOLDEN = Path(__file__).parent.parent / "golden" / "bert_tree.txt"
TINY = BertConfig(vocab_size=150, width=32, layers=2, heads=4, feed_forward=64, positions=24)
EXACT = Execution(policy("float32"), "xla", "none", False)


def modules(config, execution=EXACT):
    heads = {
        "pooler": Pooler(config.width, "tanh", config.initializer, execution),
        "mlm": MlmHead(config.vocab_size, config.width, config.activation, config.norm_epsilon, config.initializer, execution),
        "nsp": Classifier(2, config.initializer, execution),
    }
    return StackedEncoder(config, execution), heads


def init(config, key):
    """Boxed parameters of the encoder and its three heads."""
    bert, heads = modules(config)
    ids = jnp.zeros((1, 3), jnp.int32)
    params = bert.init(key, ids, ids, ids, Visible.by_lengths(jnp.array([3])), None)["params"]
    hidden = jnp.zeros((1, 3, config.width))
    table = nn.meta.unbox(params)["embeddings"]["token"]["table"]
    params["pooler"] = heads["pooler"].init(key, hidden, ids)["params"]
    params["mlm"] = heads["mlm"].init(key, hidden, table)["params"]
    params["nsp"] = heads["nsp"].init(key, hidden[:, 0])["params"]
    return params


def lively(config, seed=0):
    """Parameters at which every term matters: kernels large enough for uneven attention, no bias at zero, no scale at one."""
    draw = np.random.default_rng(seed)
    spread = {"kernel": 0.25, "table": 0.02, "bias": 0.1, "scale": 0.2}

    def value(path, leaf):
        name = path.rsplit("/", 1)[1]
        return np.float32(draw.normal(name == "scale", spread[name], leaf.shape))

    shapes = jax.eval_shape(functools.partial(init, config), jax.random.key(0))
    return tree.map_with_path(value, nn.meta.unbox(shapes))


def inputs(config):
    """Three rows of odd length: a padded pair, a row of one token, and a full single text."""
    draw = np.random.default_rng(1)
    tokens = draw.integers(0, config.vocab_size, (3, 13)).astype(np.int32)
    types = np.zeros((3, 13), np.int32)
    types[0, 5:] = max(config.types - 1, 0)
    positions = np.tile(np.arange(13, dtype=np.int32), (3, 1))
    return tokens, types, positions, np.array([9, 1, 13], np.int32)


@functools.cache
def compiled(config):
    """All hidden states, MLM logits and NSP logits, as one compiled function of (params, tokens, types, positions, lengths, noise)."""
    bert, heads = modules(config)

    def run(params, tokens, types, positions, lengths, noise):
        hidden = bert.apply({"params": params}, tokens, types, positions, Visible.by_lengths(lengths), noise, all_layers=True).layers
        mlm = heads["mlm"].apply({"params": params["mlm"]}, hidden[-1], params["embeddings"]["token"]["table"])
        nsp = heads["nsp"].apply({"params": params["nsp"]}, heads["pooler"].apply({"params": params["pooler"]}, hidden[-1], types))
        return hidden, mlm, nsp

    return jax.jit(run)


def forward(config, params, tokens, types, positions, lengths, noise=None):
    with jax.default_matmul_precision("highest"):
        return compiled(config)(params, tokens, types, positions, lengths, noise)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "gelu_erf"},
        {"norm_epsilon": 1e-5, "types": 1, "first_position": 2, "activation": "gelu_erf"},
        {"types": 0, "first_position": 2},
        {"heads": 1},
    ],
    ids=["bert", "erf", "roberta-hf", "roberta-fairseq", "one-head"],
)
def test_equals_the_reference(changes):
    """<= 1e-5 in every hidden state and logit, all of the order of 1, float32 against float64."""
    config = dataclasses.replace(TINY, **changes)
    params, rows = lively(config), inputs(config)
    hidden, mlm, nsp = forward(config, params, *rows)
    wide = jax.tree.map(np.float64, params)
    expected = reference.encode(wide, config, *rows)
    np.testing.assert_allclose(hidden, expected, rtol=0, atol=1e-5)
    logits = reference.mlm_logits(wide["mlm"], wide["embeddings"]["token"]["table"], config, expected[-1])
    np.testing.assert_allclose(mlm[..., : config.vocab_size], logits, rtol=0, atol=1e-5)
    np.testing.assert_allclose(nsp, reference.nsp_logits(wide["pooler"], wide["nsp"], expected[-1]), rtol=0, atol=1e-5)


def vocabulary(pad, size=150):
    return Vocabulary(size, pad=pad, unk=4, cls=0, sep=2, mask=size - 1, reserved=(), fingerprint="")


@pytest.mark.parametrize("pad", [1, 3])
@pytest.mark.parametrize("length", [511, 512])
def test_positions_start_after_the_pad_id_and_512_are_usable(pad, length):
    """The table has 513 + pad rows; a NumPy look-up, which raises past the end, gives the same embeddings to 1e-5."""
    config = dataclasses.replace(TINY, positions=512, types=1, first_position=2, norm_epsilon=1e-5).with_vocabulary(vocabulary(pad))
    params = lively(config)["embeddings"]
    assert params["position"]["table"].shape[0] == 512 + pad + 1
    tokens = np.random.default_rng(2).integers(5, 149, (2, length)).astype(np.int32)
    types, positions = np.zeros_like(tokens), np.tile(np.arange(length, dtype=np.int32), (2, 1))
    got, _ = jax.jit(Embeddings(config.embeddings, EXACT).apply)({"params": params}, tokens, types, positions, None)
    wide = jax.tree.map(np.float64, params)
    total = wide["token"]["table"][tokens] + wide["position"]["table"][positions + pad + 1] + wide["type"]["table"][0]
    np.testing.assert_allclose(got, reference.layer_norm(total, wide["norm"], 1e-5), rtol=0, atol=1e-5)


def test_a_tokenizer_sets_the_size_and_where_roberta_counts_from():
    bert, roberta = TINY, dataclasses.replace(TINY, first_position=2)
    changed = [model.with_vocabulary(vocabulary(3, 77)) for model in (bert, roberta)]
    assert [(config.vocab_size, config.first_position) for config in changed] == [(77, 0), (77, 4)]
    assert changed[0] == dataclasses.replace(bert, vocab_size=77)


def test_a_recipe_without_data_stands_for_the_published_layout():
    """vocab.txt of BERT uncased and the dictionary of RoBERTa: where the specials are; with_vocabulary then changes nothing."""
    bert, roberta = BertConfig(), dataclasses.replace(BertConfig(), vocab_size=50265, first_position=2)
    one, two = bert.published_vocabulary, roberta.published_vocabulary
    assert (one.size, one.pad, one.unk, one.cls, one.sep, one.mask, one.reserved[-1]) == (30522, 0, 100, 101, 102, 103, 998)
    assert (two.size, two.pad, two.unk, two.cls, two.sep, two.mask) == (50265, 1, 3, 0, 2, 50264)
    assert two.reserved == (0, 1, 2, 3, 50261, 50262, 50263, 50264)
    assert bert.with_vocabulary(one) == bert and roberta.with_vocabulary(two) == roberta


def test_last_layer_is_the_default():
    params, (tokens, types, positions, lengths) = lively(TINY), inputs(TINY)
    states = forward(TINY, params, tokens, types, positions, lengths)[0]
    last = jax.jit(StackedEncoder(TINY, EXACT).apply)({"params": params}, tokens, types, positions, Visible.by_lengths(lengths), None).last
    assert states.shape == (TINY.layers + 1, 3, 13, TINY.width)
    np.testing.assert_allclose(last, states[-1], rtol=0, atol=1e-6)


def test_padding_does_not_reach_the_text():
    """Other ids, types and positions in the padding leave the states of real tokens bitwise the same."""
    params, (tokens, types, positions, lengths) = lively(TINY), inputs(TINY)
    padding = np.arange(13) >= lengths[:, None]
    other = [np.where(padding, 1, array).astype(np.int32) for array in (tokens, types, positions)]
    one, two = forward(TINY, params, tokens, types, positions, lengths)[0], forward(TINY, params, *other, lengths)[0]
    np.testing.assert_array_equal(np.asarray(one)[:, ~padding], np.asarray(two)[:, ~padding])
    assert not np.array_equal(one, two)


def test_noise_changes_every_layer_and_only_its_rows_decide():
    """Dropout acts at the embeddings and in each layer; a row alone gives what it gives in the batch."""
    params, rows = lively(TINY), inputs(TINY)
    noise = rng.training(0, jnp.int32(7), 3)
    quiet, noisy = forward(TINY, params, *rows)[0], forward(TINY, params, *rows, noise=noise)[0]
    assert all(np.abs(a - b).max() > 0.1 for a, b in zip(quiet, noisy, strict=True))
    last = dataclasses.replace(noise, rows=noise.rows[2:])
    alone = forward(TINY, params, *(array[2:] for array in rows), noise=last)[0]
    np.testing.assert_allclose(alone, noisy[:, 2:], rtol=0, atol=1e-5)


@pytest.mark.parametrize("site, field", [("embeddings", "dropout"), ("attention_weights", "attention_dropout")])
def test_each_rate_has_its_own_field(site, field):
    """With one rate at 0, noise acts at the other's sites only; the embedding output has zeros, since its dropout follows the norm."""
    config = dataclasses.replace(TINY, **{"dropout": 0.0, "attention_dropout": 0.0, field: 0.5})
    params, rows = lively(config), inputs(config)
    quiet, noisy = forward(config, params, *rows)[0], forward(config, params, *rows, noise=rng.training(0, jnp.int32(7), 3))[0]
    assert abs((np.asarray(noisy[0]) == 0).mean() - 0.5 * (site == "embeddings")) <= 0.05
    assert np.array_equal(quiet[0], noisy[0]) == (site != "embeddings")
    assert np.abs(quiet[1] - noisy[1]).max() > 0.1


@pytest.mark.parametrize("form", ["lengths", "segments", "bias"])
def test_bfloat16_is_finite_with_an_empty_row(form):
    """Values and gradients, for every form of the mask; the second row is padding only. One layer keeps the compile short."""
    config = dataclasses.replace(TINY, layers=1)
    execution = Execution(policy("bfloat16"), "xla", "none", False)
    params, (tokens, types, positions, _) = lively(config), inputs(config)
    seen = np.arange(13) < np.array([9, 0, 13])[:, None]
    visible = {
        "lengths": Visible.by_lengths(jnp.array([9, 0, 13])),
        "segments": Visible.by_segments(jnp.asarray(seen, jnp.int32)),
        "bias": Visible.by_bias(jnp.broadcast_to(jnp.where(seen, 0.0, -1e30)[:, None, None, :], (3, TINY.heads, 13, 13))),
    }[form]

    def total(params):
        noise = rng.training(0, jnp.int32(0), 3)
        hidden = (
            StackedEncoder(config, execution).apply({"params": params}, tokens, types, positions, visible, noise, all_layers=True).layers
        )
        assert hidden.dtype == jnp.bfloat16
        return jnp.sum(jnp.square(hidden.astype(jnp.float32)))

    value, gradient = jax.jit(jax.value_and_grad(total))(params)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() and leaf.dtype == np.float32 for leaf in jax.tree.leaves(gradient))


def test_bfloat16_stays_near_float32():
    """Two layers of rounding to 8 bits: <= 0.1 at hidden states of the order of 1, and the mean error <= 0.02."""
    params, (tokens, types, positions, lengths) = lively(TINY), inputs(TINY)
    low = StackedEncoder(TINY, Execution(policy("bfloat16"), "xla", "none", False))
    hidden = jax.jit(low.apply)({"params": params}, tokens, types, positions, Visible.by_lengths(lengths), None).last
    error = np.abs(np.float32(hidden) - forward(TINY, params, tokens, types, positions, lengths)[0][-1])
    assert error.max() <= 0.1 and error.mean() <= 0.02


def test_rows_beyond_the_vocabulary_are_never_predicted():
    """Their logits are NEVER, and they weigh nothing in a softmax: its gradient does not touch them."""
    params, rows = lively(TINY), inputs(TINY)
    mlm = forward(TINY, params, *rows)[1]
    assert mlm.shape[-1] == 256 and mlm.dtype == jnp.float32
    assert (np.asarray(mlm[..., TINY.vocab_size :]) == np.float32(NEVER)).all()
    gradient = jax.grad(lambda logits: jax.nn.logsumexp(logits, axis=-1).sum())(mlm)
    assert not np.asarray(gradient[..., TINY.vocab_size :]).any()


def test_parameter_tree_is_the_golden_one(tmp_path):
    params = jax.eval_shape(functools.partial(init, TINY), rng.init_key(0))
    lines = [f"{path} {'x'.join(map(str, leaf.value.shape))} {','.join(map(str, leaf.names))}" for path, leaf in tree.leaves(params)]
    actual = tmp_path / GOLDEN.name
    actual.write_text("\n".join(lines) + "\n")
    assert actual.read_text() == GOLDEN.read_text(), (
        f"the parameter tree of BERT changed. Saved checkpoints and the key maps of convert/ name these paths. If the change is meant, "
        f"copy {actual} over tests/golden/{GOLDEN.name} and adapt the key maps; if not, restore the tree"
    )


def test_initial_values():
    """Biases 0, scales 1, padding rows 0, every other weight inside 2 sigma with the standard deviation that the cut leaves."""
    params = nn.meta.unbox(jax.jit(functools.partial(init, TINY))(rng.init_key(3)))
    for path, leaf in tree.leaves(params):
        assert leaf.dtype == jnp.float32
        name = path.rsplit("/", 1)[1]
        if name in ("bias", "scale"):
            assert (np.asarray(leaf) == (name == "scale")).all(), path
            continue
        true = np.asarray(leaf)[: TINY.vocab_size] if path.endswith("token/table") else np.asarray(leaf)
        assert np.abs(true).max() <= 0.04, path
        assert abs(true.std() / (0.02 * 0.87963) - 1) <= 3 / np.sqrt(2 * true.size), path
    assert not np.asarray(params["embeddings"]["token"]["table"])[TINY.vocab_size :].any()


def test_initial_values_of_the_plain_normal():
    """Biases and scales as before; the deviation is 0.02 itself, and some weights lie beyond the cut of the other."""
    params = nn.meta.unbox(jax.jit(functools.partial(init, dataclasses.replace(TINY, init="normal")))(rng.init_key(3)))
    for path, leaf in tree.leaves(params):
        name = path.rsplit("/", 1)[1]
        if name in ("bias", "scale"):
            assert (np.asarray(leaf) == (name == "scale")).all(), path
        elif leaf.size >= 1024:
            true = np.asarray(leaf)[: TINY.vocab_size] if path.endswith("token/table") else np.asarray(leaf)
            assert abs(true.std() / 0.02 - 1) <= 4 / np.sqrt(2 * true.size) and np.abs(true).max() > 0.04, path


def test_parameters_differ_between_layers():
    encoder = nn.meta.unbox(jax.jit(functools.partial(init, TINY))(rng.init_key(0)))["encoder"]
    kernels = [np.asarray(encoder[layer]["attention"][part]["kernel"]) for layer in encoder for part in ("query", "key", "value", "output")]
    correlation = np.corrcoef([kernel.ravel() for kernel in kernels])
    assert np.abs(correlation - np.eye(len(kernels))).max() <= 5 / np.sqrt(kernels[0].size)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"width": 30}, "model.width 30 does not divide into model.heads 4"),
        ({"layers": 0}, "model.layers is 0"),
        ({"types": -1}, "model.types is -1"),
        ({"dropout": 1.0}, "model.dropout is 1.0"),
        ({"norm_epsilon": 0.0}, "model.norm_epsilon is 0.0"),
        ({"init": "uniform"}, "model.init is 'uniform'; use one of truncated_normal, normal"),
        ({"activation": "gelu"}, "model.activation is 'gelu'; use one of gelu_tanh, gelu_erf"),
    ],
)
def test_config_errors_name_the_field(changes, message):
    with pytest.raises(UserError, match=message):
        dataclasses.replace(TINY, **changes)
