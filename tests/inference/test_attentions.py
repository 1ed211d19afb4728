"""Attention maps of a loaded model, for every family and for pairs of networks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference.model import Model
from jaxenc.inference.network import exact, objective_of
from jaxenc.layers.visible import Visible
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.bilm import BilmConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.selection import thinned

SIZES = {"vocab_size": 200, "width": 16, "layers": 3, "heads": 2, "feed_forward": 24}
BERT = BertConfig(**SIZES, positions=40)
GENERATOR = dataclasses.replace(BERT, layers=1)
# (objective, model, layers of the network whose hidden states `encode` returns)
MODELS = {
    "bert": (MlmConfig(), BERT, 3),
    "albert": (MlmConfig(), AlbertConfig(**SIZES, embedding=8, groups=2, positions=40), 3),
    "xlnet": (HeadsConfig(), XlnetConfig(**SIZES), 3),
    "gpt": (CausalConfig(), GptConfig(**SIZES, positions=40), 3),
    "generator": (MlmConfig(), tiny.PAIR, 1),
    "electra": (RtdConfig(), tiny.PAIR, 2),
    "pair": (RtdConfig(), NetworkPairConfig(generator=GENERATOR, discriminator=BERT, sharing="table"), 3),
}


def loaded(objective: ObjectiveConfig, config: ModelConfig) -> Model:
    run = Run(objective, config)
    return Model(run, jax.tree.map(jnp.asarray, tiny.drawn(run)), None)


def rows(model: Model, lengths: tuple[int, ...]) -> dict[str, np.ndarray]:
    longest = max(lengths)
    tokens = np.random.default_rng(0).integers(5, 200, (len(lengths), longest), dtype=np.int32)
    segments = (np.arange(longest) < np.array(lengths)[:, None]).astype(np.int32)
    positions = model.config.model.positions_of(tokens)
    return {"tokens": tokens, "types": np.zeros_like(tokens), "segments": segments, "positions": np.array(positions)}


@pytest.mark.parametrize(
    "objective, config, layers", thinned(MODELS.values(), *(MODELS[name] for name in ("albert", "xlnet", "pair"))), ids=list(MODELS)
)
def test_weights_sum_to_one_over_the_keys_that_are_seen(objective: ObjectiveConfig, config: ModelConfig, layers: int) -> None:
    """Of every real query (<= 1e-6); exactly 0 for padding, and for the tokens after a query of a causal model."""
    model = loaded(objective, config)
    found = np.asarray(model.compute("attentions", rows(model, (9, 6))))
    real = found[:, 1, :, :6]
    assert found.shape[0] == layers and real.dtype == np.float32
    np.testing.assert_allclose(real.sum(axis=-1), 1, rtol=0, atol=1e-6)
    assert not real[..., 6:].any() and real[..., :6].any(axis=-1).all()
    if isinstance(config, GptConfig):
        assert not np.triu(found[:, 0, :, :9, :9], 1).any()
    assert np.abs(real[0] - real[-1]).max() > 1e-4 or layers == 1


def test_weights_are_the_softmax_of_the_layer_s_own_input() -> None:
    """Of a BERT, against NumPy: each layer's queries and keys from `hidden` (<= 1e-5)."""
    model = loaded(MlmConfig(), BERT)
    given = rows(model, (9, 9))
    found, hidden = (np.asarray(model.compute(name, given))[:, :2] for name in ("attentions", "hidden"))
    for layer in range(3):
        part = jax.device_get(model.params["encoder"][f"layer_{layer:02d}"]["attention"])
        q, k = (hidden[layer, :, :9] @ part[name]["kernel"] + part[name]["bias"] for name in ("query", "key"))
        q, k = (x.reshape(2, 9, 2, 8).transpose(0, 2, 1, 3) for x in (q, k))
        scores = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(8))
        np.testing.assert_allclose(found[layer, :, :, :9, :9], scores / scores.sum(-1, keepdims=True), rtol=0, atol=1e-5)


def test_texts_of_many_lengths_come_back_in_order() -> None:
    """20 texts, more than are computed at once, each as it is alone (<= 1e-6), 0 at padding."""
    words = "the quick brown fox jumps over the lazy dog".split()
    tokenizer = wordpiece.train([" ".join(words)] * 20, 60)
    model = dataclasses.replace(loaded(MlmConfig(), BERT), tokenizer=tokenizer)
    texts = [" ".join(words[: 1 + number % 9]) for number in range(20)]
    found = model.attentions(texts)
    assert found.weights.shape == (3, 20, 2, *found.tokens.shape[1:] * 2) and found.mask.sum() < found.mask.size
    for number in (0, 8, 19):
        alone = model.attentions([texts[number]])
        length = alone.tokens.shape[1]
        np.testing.assert_allclose(found.weights[:, number, :, :length, :length], alone.weights[:, 0], rtol=0, atol=1e-6)
        assert (found.tokens[number, :length] == alone.tokens[0]).all()
        assert not found.weights[:, number, :, length:].any() and not found.weights[:, number, :, :, length:].any()
    for given, said in (([], "attentions takes a list of texts, and this one is empty"), ("a", "texts must be a list of str; give")):
        with pytest.raises(UserError, match=said):
            model.attentions(given)


def test_relative_positions_do_not_see_where_the_padding_is() -> None:
    """An XLNet, whose own tokenizers pad at the left: rows of different lengths, padded at either side, as each is alone (<= 1e-5)."""
    model = loaded(*MODELS["xlnet"][:2])
    lengths, longest = (9, 5, 1), 9
    right = rows(model, lengths)
    shift = lambda array: np.stack([np.roll(row, longest - length) for row, length in zip(array, lengths, strict=True)])
    left = {name: shift(array) if name in ("tokens", "segments") else array for name, array in right.items()}
    for name in ("attentions", "hidden"):
        after, before = (np.asarray(model.compute(name, given)) for given in (right, left))
        for number, length in enumerate(lengths):
            alone = np.asarray(model.compute(name, {field: array[number : number + 1, :length] for field, array in right.items()}))[:, 0]
            for found, part in ((after, slice(0, length)), (before, slice(longest - length, longest))):
                at = found[:, number, :, part, part] if name == "attentions" else found[:, number, part]
                wanted = alone[:, :, :length, :length] if name == "attentions" else alone[:, :length]
                np.testing.assert_allclose(at, wanted, rtol=0, atol=1e-5)
                if name == "attentions":
                    assert found[:, number, :, part].sum() == pytest.approx(at.sum(), abs=1e-6), "padding is read"


def test_a_model_without_attention_is_one_line() -> None:
    with pytest.raises(UserError, match="no attention"):
        objective_of(Run(BilmConfig(), ElmoConfig(vocab_size=200)), None).attentions({}, {})


def test_nothing_is_handed_out_unless_asked_for_and_never_by_scanned_layers() -> None:
    """The result of `apply` is the states alone, parameters are all that `init` returns, and a scan says what to do."""
    model = loaded(MlmConfig(), BERT)
    encoder, given = BERT.encoder((), exact()), rows(model, (9,))
    inputs = (given["tokens"], given["types"], given["positions"], Visible.by_keys(given["segments"]))
    assert encoder.apply({"params": model.params}, *inputs, None).last.shape == (1, 9, 16)
    assert set(encoder.lazy_init(jax.random.key(0), *inputs, None)) == {"params"}
    scanned = BERT.encoder((), dataclasses.replace(exact(), scan=True))
    assert isinstance(scanned.execution, Execution) and scanned.execution.scan
    with pytest.raises(ValueError, match="scan off"):
        scanned.attention_maps(model.params, *inputs)
