"""Decoding with a cache: logits against those of the whole text without one, the number of compilations, and which models are refused."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.inference import decode
from jaxenc.inference.decode import MAX_NEW, ROWS, Decoder, Prompt
from jaxenc.inference.model import Model
from jaxenc.inference.sampling import Sampling
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.families.test_own_family import ToyConfig

GPT = GptConfig(vocab_size=200, width=16, layers=2, heads=2, feed_forward=64, positions=40)
LENGTH = 16
LEFT_TO_RIGHT = dataclasses.replace(tiny.MODEL, width=16, heads=2, positions=40, attention="causal")
MODELS: dict[str, ModelConfig] = {
    "gpt": GPT,
    "bert": LEFT_TO_RIGHT,
    "roberta": dataclasses.replace(LEFT_TO_RIGHT, types=1, first_position=2),
    "electra": dataclasses.replace(tiny.PAIR, embedding=32, attention="causal"),
    "pair": NetworkPairConfig(tiny.MODEL, LEFT_TO_RIGHT),
}


def model_of(config: ModelConfig, objective: ObjectiveConfig = CausalConfig()) -> Model:
    run = Run(objective, config)
    return Model(run, tiny.drawn(run), None)


def decoder_of(model: Model) -> Decoder:
    return decode.of(model.objective, tiny.VOCABULARY)


# `gpt` and `roberta` have the same network as `bert`, with other embeddings.
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.full if name == "bert" else []) for name in MODELS])
def test_logits_with_a_cache_are_those_of_the_whole_text(name: str) -> None:
    """Within 1e-5 of the largest, at every place from the prompts' ends on, of prompts of three lengths in one batch."""
    model, lengths = model_of(MODELS[name]), np.array([9, 4, 1], np.int32)
    decoder, tokens = decoder_of(model), np.random.default_rng(0).integers(5, 200, (3, LENGTH)).astype(np.int32)
    wanted = np.asarray(jax.jit(model.apply)(model.params, {"tokens": tokens})["next_token"])
    extend, places = jax.jit(decoder.extend), np.broadcast_to(np.arange(9, dtype=np.int32), (3, 9))
    padded = np.where(places < lengths[:, None], tokens[:, :9], 0)
    logits, cache = extend(model.params, decoder.empty(3, LENGTH), padded, places, lengths - 1)
    for step in range(LENGTH - 9 + 1):
        at = lengths - 1 + step
        found = np.asarray(logits)[:, :200]
        assert np.abs(found - wanted[np.arange(3), at]).max() <= 1e-5 * np.abs(wanted).max(), step
        if step < LENGTH - 9:
            after = (at + 1)[:, None]
            logits, cache = extend(model.params, cache, np.take_along_axis(tokens, after, 1), after, np.zeros(3, np.int32))


def test_the_most_probable_tokens_are_those_of_the_whole_text() -> None:
    """Of ten prompts of one to nine tokens, more than a batch takes, each token is that of the whole text before it, without a cache."""
    model = model_of(LEFT_TO_RIGHT)
    # Nothing ends these texts early.
    decoder, random = dataclasses.replace(decoder_of(model), ends=frozenset()), np.random.default_rng(1)
    prompts = [Prompt(random.integers(5, 200, length).tolist(), number, 0) for number, length in enumerate((3, 1, 8, 5, 2, 7, 6, 4, 9, 3))]
    assert len(prompts) > ROWS
    found = decoder.generate(model.params, prompts, 5, Sampling())
    assert {one.finish_reason for one in found} == {MAX_NEW} and len({one.ids for one in found}) > 5
    # Padding at the end changes nothing before it.
    texts = np.array([[*prompt.ids, *one.ids, *[0] * LENGTH][:LENGTH] for prompt, one in zip(prompts, found, strict=True)], np.int32)
    logits = np.asarray(jax.jit(model.apply)(model.params, {"tokens": texts})["next_token"])
    best = np.where(decoder.allowed[: logits.shape[-1]], logits, -np.inf).argmax(axis=-1)
    for prompt, one, row in zip(prompts, found, best, strict=True):
        assert one.ids == tuple(row[len(prompt.ids) - 1 :][:5])


def test_two_programs_are_compiled() -> None:
    """One for the prompts and one for a token: over 20 tokens, a second prompt of the same lengths, another seed and temperature. And a
    text that is given its first five tokens goes on as it did: a draw depends on its place in the text."""
    model = model_of(dataclasses.replace(GPT, layers=1))
    decoder = dataclasses.replace(decoder_of(model), ends=frozenset())
    go_on = lambda ids, most, rule: decoder.generate(model.params, [Prompt(ids, 4, 1)], most, rule)[0].ids
    first = go_on([7, 8, 9], 20, Sampling(1.0))
    for found in (first, go_on([9, 8, 7, 6, 5], 20, Sampling(0.5, seed=3))):
        assert len(found) == 20 and len(set(found)) > 5
    assert go_on([7, 8, 9, *first[:5]], 12, Sampling(1.0)) == first[5:17]
    assert (decoder._prefill._cache_size(), decoder._decode_step._cache_size()) == (1, 1)
    # The count does see another shape.
    decoder.generate(model.params, [Prompt([7] * 9, 0, 0)], 1, Sampling(1.0))
    assert decoder._prefill._cache_size() == 2


@pytest.mark.parametrize(
    "config, objective, words",
    [
        (tiny.MODEL, MlmConfig(), "does not predict the next token from the tokens before it.*objective.kind=causal"),
        (LEFT_TO_RIGHT, MlmConfig(), "does not predict the next token"),
        (tiny.MODEL, HeadsConfig(("next_token",), weights=(0.0,)), "does not predict the next token"),
        (ToyConfig(), CausalConfig(), "with a cache of keys and values; set model.kind to bert or .*, not toy$"),
    ],
    ids=["mlm", "causal mlm", "full attention", "own family"],
)
def test_a_model_that_cannot_decode_is_one_line(config: ModelConfig, objective: ObjectiveConfig, words: str) -> None:
    with pytest.raises(UserError, match=words):
        decoder_of(model_of(config, objective))


def test_other_heads_do_not_matter() -> None:
    """A model that classifies too continues texts with the same network and head as the one that only predicts."""
    both = model_of(GPT, HeadsConfig(("classifier", "next_token", "last_token"), ("a", "b")))
    one, other = decoder_of(both), decoder_of(model_of(GPT))
    assert (one.encoder, one.head, one.ends) == (other.encoder, other.head, other.ends) and (one.allowed == other.allowed).all()
