"""ELMo against the NumPy reference; what reads what; sizes; numbers that do not fit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng, tree
from jaxenc.data import characters
from jaxenc.data.vocabulary import of_words
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.both_directions import Read
from jaxenc.families.count import parameter_count
from jaxenc.families.elmo import sizes
from jaxenc.families.elmo.model import Elmo, ElmoConfig
from jaxenc.layers.softmax import NEVER, Softmax
from jaxenc.precision import policy
from tests.families import reference_elmo as reference

EXECUTION = Execution(policy("float32"), "xla", "none", False)
TINY = ElmoConfig(
    vocab_size=20, width=6, cells=10, character_width=3, filter_widths=(1, 3), filters=(4, 5), cell_clip=0.4, projection_clip=0.3
)
BATCH, LENGTH = 3, 5


def start(config):
    """(module, random parameters in float32)."""
    elmo = Elmo(config, EXECUTION)
    params = nn.meta.unbox(jax.eval_shape(elmo.start, jax.random.key(0)))
    draws = np.random.default_rng(0)
    return elmo, tree.map_with_path(lambda _, leaf: draws.normal(size=leaf.shape).astype(np.float32) / 2, params)


def words(seed, rows=20):
    """(tokens, characters) of random words."""
    draws = np.random.default_rng(seed)
    tokens = draws.integers(0, rows, (BATCH, LENGTH)).astype(np.int32)
    return tokens, characters.of_words([f"w{token}é" * 3 for token in tokens.ravel()]).reshape(BATCH, LENGTH, -1)


def vectors(config, params, read):
    """What enters the first layer, [batch, length, width], by the reference."""
    wide = tree.map_with_path(lambda _, leaf: np.float64(leaf), params)
    if config.input == "tokens":
        return wide["word" if config.words else "token"]["table"][read.tokens]
    rows = [reference.word(wide["char_cnn"], config.char_cnn, ids) for ids in read.characters.reshape(-1, characters.WIDTH)]
    return np.stack(rows).reshape(BATCH, LENGTH, -1)


@pytest.mark.parametrize(
    "changes",
    [{}, {"residual": False, "layers": 3}, {"input": "tokens"}, {"input": "tokens", "words": 50}, {"forget_bias": 0.0, "cell_clip": 0.0}],
)
def test_both_directions_are_the_reference(changes):
    """All layers and the state behind, of two segments in a row, some places not real."""
    config = dataclasses.replace(TINY, **changes)
    elmo, params = start(config)
    state = elmo.zero_state(BATCH)
    held = {(name, row): ([np.zeros(10)] * config.layers, [np.zeros(6)] * config.layers) for name in state for row in range(BATCH)}
    held = {key: (list(cells), list(hiddens)) for key, (cells, hiddens) in held.items()}
    wide = tree.map_with_path(lambda _, leaf: np.float64(leaf), params)
    run = jax.jit(elmo.apply, static_argnums=5)
    for segment in range(2):
        reads = [
            Read(*words(10 * segment + way, config.words or 20), np.random.default_rng(way).random((BATCH, LENGTH)) < 0.8)
            for way in range(2)
        ]
        both, state = run({"params": params}, *reads, state, None, True)
        for name, read in zip(("forward", "backward"), reads, strict=True):
            ours, x = getattr(both, name), vectors(config, params, read)
            assert ours.shape == (config.layers + 1, BATCH, LENGTH, 6)
            for row in range(BATCH):
                cells, hiddens = held[name, row]
                expected = reference.direction_row(wide[name], config, x[row], read.real[row], cells, hiddens)
                np.testing.assert_allclose(ours[:, row], expected, atol=1e-5)
                np.testing.assert_allclose(state[name].cell[row], np.stack(cells), atol=1e-5)
                np.testing.assert_allclose(state[name].hidden[row], np.stack(hiddens), atol=1e-5)


def test_no_output_knows_of_a_word_that_comes_later_in_its_reading():
    """Exactly: a later word of the text changes no forward output before it, an earlier one no backward output behind it."""
    elmo, params = start(TINY)
    tokens, ids = words(1)
    segments = np.ones((BATCH, LENGTH), np.int32)
    text = jax.jit(elmo.text)
    hidden, _ = text(params, tokens, ids, segments)
    other = ids.copy()
    other[:, 3] = characters.of_words(["another"])
    changed, _ = text(params, tokens, other, segments)
    same = np.asarray(hidden == changed).all(axis=1)  # [layers + 1, length, 2 · width]
    assert same[:, :3, :6].all() and same[:, 4:, 6:].all()
    assert not same[:, 3].any(axis=-1).all() and not same[1:, 4:, :6].any(axis=-1).all() and not same[1:, :3, 6:].any(axis=-1).all()


def test_a_padded_row_keeps_its_state():
    elmo, params = start(TINY)
    reads = [Read(*words(way), np.arange(BATCH)[:, None].repeat(LENGTH, 1) != 1) for way in range(2)]
    run = jax.jit(elmo.apply, static_argnums=5)
    all_real = [dataclasses.replace(read, real=np.ones_like(read.real)) for read in reads]
    _, before = run({"params": params}, *all_real, elmo.zero_state(BATCH), None)
    both, after = run({"params": params}, *reads, before, None)
    top = run({"params": params}, *reads, before, None, True)[0]
    np.testing.assert_allclose(both.forward, top.forward[-1], atol=1e-6)
    moved = jax.tree.map(lambda old, new: np.asarray(old != new).any(axis=(1, 2)).tolist(), before, after)
    assert all(leaf == [True, False, True] for leaf in jax.tree.leaves(moved, is_leaf=lambda leaf: isinstance(leaf, list)))
    assert not np.asarray(both.forward[1]).any() and not np.asarray(both.backward[1]).any()


def test_text_reads_each_row_from_its_own_ends():
    """A short text in a batch is the text alone; the first layer is the word twice; padding gives zeros; the state is
    the one behind the text."""
    elmo, params = start(TINY)
    tokens, ids = words(2)
    lengths, run = [3, 1, 3], jax.jit(elmo.apply, static_argnums=5)
    hidden, state = jax.jit(elmo.text)(params, tokens, ids, (np.arange(LENGTH) < np.array(lengths)[:, None]).astype(np.int32))
    assert hidden.shape == (3, BATCH, LENGTH, 12) and (hidden[0, ..., :6] == hidden[0, ..., 6:]).all()
    for row, length in enumerate(lengths):
        cut = (tokens[row : row + 1, :length], ids[row : row + 1, :length])
        turned = [array[:, ::-1] for array in cut]
        both, after = run({"params": params}, Read(*cut, None), Read(*turned, None), elmo.zero_state(1), None, True)
        expected = np.concatenate([both.forward[:, 0], both.backward[:, 0, ::-1]], axis=-1)
        np.testing.assert_allclose(hidden[:, row, :length], expected, atol=1e-6)
        assert not np.asarray(hidden[:, row, length:]).any()
        for whole, own in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            np.testing.assert_allclose(whole[row], own[0], atol=1e-6)


def test_padding_stands_anywhere():
    """Before a text, in it and behind it: what is left is the text without padding, zeros stand in its places (<= 1e-6)."""
    elmo, params = start(TINY)
    tokens, ids = words(3)
    segments = np.array([[0, 0, 1, 1, 1], [1, 0, 1, 1, 0], [0, 1, 0, 0, 1]], np.int32)
    assert segments.shape == (BATCH, LENGTH)
    text = jax.jit(elmo.text)
    hidden, state = text(params, tokens, ids, segments)
    assert not np.asarray(hidden)[:, segments == 0].any()
    for row, real in enumerate(segments > 0):
        alone, after = text(params, tokens[row : row + 1, real], ids[row : row + 1, real], np.ones((1, real.sum()), np.int32))
        np.testing.assert_allclose(hidden[:, row, real], alone[:, 0], atol=1e-6)
        for whole, own in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            np.testing.assert_allclose(whole[row], own[0], atol=1e-6)


def test_dropout_is_on_what_layers_read_and_on_the_last():
    """With zero kernels an LSTM gives zeros, so the second layer's output is what its residual adds: the dropped-out zeros. With tokens and
    one layer only the first input and the output are left: both directions draw their own, and evaluation draws nothing."""
    config = dataclasses.replace(TINY, input="tokens", dropout=0.5, layers=1)
    elmo, params = start(config)
    reads, keys = [Read(words(1)[0], None, None)] * 2, rng.training(0, jnp.int32(3), BATCH)
    run = jax.jit(lambda noise: elmo.apply({"params": params | {"backward": params["forward"]}}, *reads, elmo.zero_state(BATCH), noise)[0])
    dropped, whole = run(keys), run(None)
    for out in (dropped.forward, dropped.backward):
        assert 0.35 < np.mean(np.asarray(out) == 0) < 0.65
    assert (whole.forward == whole.backward).all() and ((dropped.forward == 0) != (dropped.backward == 0)).any()
    kept = np.asarray(dropped.forward) != 0
    # The state differs from the first place on, by the dropped-out input: more than twice the undropped output.
    assert np.abs(np.asarray(dropped.forward) - 2 * np.asarray(whole.forward))[kept].max() > 1e-3


def test_residual_adds_the_dropped_out_input():
    """bilm/training.py wraps the residual in the dropout: where the second LSTM gives nothing, what is left are dropped-out outputs of the
    first, zero at about half of the places before the last dropout, so at about three quarters behind it."""
    config = dataclasses.replace(TINY, input="tokens", dropout=0.5)
    elmo, params = start(config)
    silent = params | {
        name: params[name] | {"layer_01": jax.tree.map(np.zeros_like, params[name]["layer_01"])} for name in ("forward", "backward")
    }
    reads, keys = [Read(np.tile(words(1)[0], (1, 8)), None, None)] * 2, rng.training(0, jnp.int32(3), BATCH)
    run = jax.jit(lambda noise: elmo.apply({"params": silent}, *reads, elmo.zero_state(BATCH), noise))
    both, _ = run(keys)
    assert 0.68 < np.mean(np.asarray(both.forward) == 0) < 0.82
    undropped, _ = run(None)
    assert np.mean(np.asarray(undropped.forward) == 0) < 0.01


@pytest.mark.parametrize(
    "name, count", [("small", 13_593_296), ("medium", 28_027_728), ("original", 93_600_848), ("original_5_5b", 93_600_848)]
)
def test_published_counts(name, count):
    """Without the softmax, and with it 793,472 true rows less one: no padding row counts."""
    config = sizes.elmo(*sizes.ELMO[name])
    elmo, head = Elmo(config, EXECUTION), Softmax(config.vocab_size, config.pieces, config.width, EXECUTION)
    init = lambda key: nn.meta.unbox((elmo.start(key), {"softmax": head.init(key, jnp.zeros((1, config.width)))["params"]}))
    body, softmax = jax.eval_shape(init, jax.random.key(0))
    assert parameter_count(body, config.vocab_size, ()) == count
    assert parameter_count(softmax, config.vocab_size, ("softmax/table", "softmax/bias")) == 793_471 * (config.width + 1)


def test_word_tables_count_true_rows():
    """A table of the predicted words is padded and counted without its padding; one of more words has exactly that many rows."""
    for words_, rows, stored in ((0, 20, 128), (50, 50, 50)):
        config = dataclasses.replace(TINY, input="tokens", words=words_)
        params = start(config)[1]
        assert params["word" if words_ else "token"]["table"].shape == (stored, 6)
        lstms = parameter_count({name: params[name] for name in ("forward", "backward")}, 20, ())
        assert parameter_count(params, 20, ()) - lstms == rows * 6


def test_softmax_never_gives_padding_rows():
    head = Softmax(20, 20, 6, EXECUTION)
    params = nn.meta.unbox(head.init(jax.random.key(0), jnp.zeros((1, 6)))["params"])
    table, bias = head.apply({"params": params}, method="rows")
    logits = head.apply({"params": params}, jnp.ones((2, 3, 6)))
    assert logits.shape == (2, 3, 128) and (logits[..., 20:] == NEVER).all() and not np.asarray(table[20:]).any()
    np.testing.assert_allclose(logits[0, 0, :20], (table.sum(-1) + bias)[:20], rtol=1e-5)


def test_flops_of_a_row():
    """Two directions of two layers: [input; recurrent] and the projection; and the words' vectors."""
    elmo = Elmo(dataclasses.replace(TINY, input="tokens"), EXECUTION)
    assert elmo.forward_flops(7) == 2 * 2 * 7 * 2 * (12 * 40 + 10 * 6)
    filters = 50 * 1 * 3 * 4 + 48 * 3 * 3 * 5
    assert Elmo(TINY, EXECUTION).forward_flops(7) - elmo.forward_flops(7) == 2 * 7 * 2 * (filters + 2 * 2 * 81 + 9 * 6)


def test_vocabulary():
    assert TINY.published_vocabulary == of_words(20)
    assert TINY.with_vocabulary(of_words(30)).vocab_size == 30
    assert of_words(30).reserved == (0, 1, 2)


@pytest.mark.parametrize(
    "changes, told",
    [
        ({"input": "bytes"}, "model.input is 'bytes'; use characters or tokens"),
        ({"activation": "gelu_erf"}, "model.activation is 'gelu_erf'; use relu or tanh"),
        ({"filters": (3,)}, "give each width one number"),
        ({"filters": (), "filter_widths": ()}, "give each width one number"),
        ({"filter_widths": (1, 51)}, "a word has 50 characters"),
        ({"words": 19}, "set model.words to at least model.vocab_size"),
        ({"dropout": 1.0}, "model.dropout is 1.0"),
        ({"cell_clip": -1.0}, "model.cell_clip is -1.0; it is at least 0"),
        ({"cells": 0}, "model.cells is 0; it is at least 1"),
    ],
)
def test_numbers_that_do_not_fit_are_one_line(changes, told):
    with pytest.raises(UserError, match=told) as error:
        dataclasses.replace(TINY, **changes)
    assert "\n" not in str(error.value)
