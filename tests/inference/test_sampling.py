"""How the next token is chosen: frequencies against the softmax, what is never chosen, and what a draw depends on."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.data.tokenizers import bpe, word_bpe, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.heads.next_token import NEXT_TOKEN
from jaxenc.inference import sampling
from jaxenc.inference.sampling import Sampling

# The largest belongs to a piece that must not come.
LOGITS, MAY = np.float32([2.0, -1.0, 0.5, 9.0, 1.5, 0.5, -3.0, 0.0]), np.arange(8) != 3
DRAWS = 20_000


def keys(prompts: np.ndarray, samples: np.ndarray, places: np.ndarray, seed: int = 0) -> jax.Array:
    return rng.completion(seed, jnp.asarray(prompts), jnp.asarray(samples), jnp.asarray(places)).per_row("sample", NEXT_TOKEN.site)


def drawn(logits: np.ndarray, temperature: float, top_k: int, seed: int = 0) -> np.ndarray:
    """DRAWS of one softmax, at as many places of three prompts and two samples."""
    number = np.arange(DRAWS)
    choose = jax.jit(
        lambda keys: sampling.choose(jnp.broadcast_to(logits, (DRAWS, len(logits))), MAY, keys, jnp.float32(temperature), top_k)
    )
    return np.asarray(choose(keys(number % 3, number // 3 % 2, number // 6, seed)))


@pytest.mark.parametrize("temperature, top_k", [(1.0, 0), (0.5, 0), (2.0, 3), (1.0, 4), (1.0, 8)])
def test_frequencies_are_those_of_the_softmax(temperature: float, top_k: int) -> None:
    """Each within 3 standard deviations of softmax(logits / T) over the k largest, of two equal ones at the edge the first; the others and
    the piece that must not come never."""
    odds = np.exp(np.float64(LOGITS) / temperature) * MAY
    odds[np.argsort(-odds, kind="stable")[top_k or len(LOGITS) :]] = 0
    wanted = odds / odds.sum()
    found = np.bincount(drawn(LOGITS, temperature, top_k), minlength=len(LOGITS)) / DRAWS
    assert (found[wanted == 0] == 0).all() and wanted[3] == 0
    assert (np.abs(found - wanted) <= 3 * np.sqrt(wanted * (1 - wanted) / DRAWS)).all(), found - wanted


@pytest.mark.parametrize("temperature", [sampling.MIN_TEMPERATURE, 1e-6, sampling.MAX_TEMPERATURE])
def test_extreme_temperatures_draw_what_may_come(temperature: float) -> None:
    """Near 0 the most probable piece; at the other end every piece that may come, as often as another, and no other."""
    found = np.bincount(drawn(LOGITS * 1e3, temperature, 0), minlength=len(LOGITS))
    assert found[3] == 0
    assert found[0] == DRAWS if temperature < 1 else (np.abs(found[MAY] * 7 / DRAWS - 1) < 0.1).all()


def test_the_most_probable_is_the_first_of_equal_ones() -> None:
    logits = np.float32([[0, 2, 1, 2, 3], [-9, -9, -5, -1e30, 7]])
    assert sampling.choose(logits, np.arange(5) < 4, keys(*np.zeros((3, 2), int)), None, 0).tolist() == [1, 2]


def test_a_draw_depends_on_seed_prompt_sample_and_place_alone() -> None:
    """The keys of a batch are those of its rows alone; a change of any of the four numbers gives another, none of them those of another."""
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3).T
    together = jax.random.key_data(keys(*grid))
    for row, numbers in enumerate(grid.T):
        assert (jax.random.key_data(keys(*numbers[:, None]))[0] == together[row]).all()
    other = jax.random.key_data(keys(*grid, seed=1))
    assert len({tuple(key) for key in np.concatenate([together, other]).tolist()}) == 2 * 27


TEXT = ["the quick brown fox jumps over the lazy dog"] * 3


@pytest.mark.parametrize(
    "tokenizer, never, ends",
    [
        (wordpiece.train(TEXT, 60), "[PAD] [UNK] [CLS] [MASK]", "[SEP]"),
        (bpe.train(TEXT, 300), "<s> <pad> <unk> <mask>", "</s>"),
        (word_bpe.train(TEXT, 60), "<unk> <pad> _start_ _classify_", "_delimiter_"),
        (unigram.train(TEXT * 20, 45), "<unk> <s> </s> <cls> <pad> <mask> <eop>", "<sep> <eod>"),
    ],
    ids=["wordpiece", "bpe", "word_bpe", "unigram"],
)
def test_no_special_piece_is_generated(tokenizer, never: str, ends: str) -> None:
    """Text and what ends it; no row of the table after the last piece, though the model has some."""
    may, vocabulary = sampling.allowed_tokens(tokenizer.vocabulary, 384), tokenizer.vocabulary
    pieces = {tokenizer.token(index): bool(may[index]) for index in range(vocabulary.size)}
    assert {piece for piece, allowed in pieces.items() if not allowed} == set(never.split())
    assert {tokenizer.token(index) for index in sampling.end_tokens(vocabulary)} == set(ends.split())
    assert not may[vocabulary.size :].any() and all(may[list(sampling.end_tokens(vocabulary))])


def test_a_vocabulary_without_a_frame_never_ends() -> None:
    """That of GPT-1 as published: <unk>, which pads too, is all that is left out."""
    published = Vocabulary(10, pad=0, unk=0, cls=-1, sep=-1, mask=-1, reserved=(0,), fingerprint="")
    assert sampling.end_tokens(published) == frozenset() and sampling.allowed_tokens(published, 12).tolist() == [
        False,
        *[True] * 9,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"temperature": -0.5}, "temperature is -0.5; it takes 0, for the most probable token, or a number from 1e-30"),
        ({"temperature": 1e-40}, "temperature is 1e-40; .* from 1e-30 to 1e[+]30"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": -1}, "top_k is -1; it takes 0, for all tokens"),
        ({"seed": -1}, r"seed is -1; it takes 0 to 2\^31 - 1"),
        ({"seed": 2**31}, "seed is 2147483648"),
    ],
)
def test_what_is_no_rule_is_one_line(changed: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        dataclasses.replace(Sampling(), **changed)
