"""Texts that a causal model continues: how they are read and written, where they end, and what they depend on."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import EncoderConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.inference import complete as completing
from jaxenc.inference import decode
from jaxenc.inference.decode import Decoder
from jaxenc.inference.model import Model
from jaxenc.inference.sampling import Sampling
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.data import word_bpe_files
from tests.data.scripts import SENTENCES

TEXT = "the quick brown fox jumps over the lazy dog"
SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 64, "positions": 32}
GPT, BERT = GptConfig(**SIZES), BertConfig(**SIZES, attention="causal")


def model_of(config: EncoderConfig, tokenizer: Tokenizer, objective: Any = CausalConfig()) -> Model:
    run = Run(objective, config).with_vocabulary(tokenizer.vocabulary)
    return Model(run, jax.tree.map(jnp.asarray, tiny.drawn(run)), tokenizer)


@pytest.fixture(scope="module")
def model() -> Model:
    """A BERT that reads from left to right, with a vocabulary of whole words."""
    return model_of(BERT, wordpiece.train([TEXT] * 3, 90))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A vocabulary as GPT-1's was published: <unk> and text, nothing that starts or ends a row."""
    return load(word_bpe_files.write(tmp_path_factory.mktemp("published") / "files", [TEXT] * 3, 80))


def test_a_seed_gives_a_text_whatever_stands_beside_it(model: Model) -> None:
    """In a batch of 1 and of 3, with one sample and with two; another seed, prompt number or sample gives another text."""
    three = ["the quick", "", "jumps over the lazy dog"]
    ask = lambda texts, **more: [one.text for one in model.complete(texts, 8, temperature=1.0, **more)]
    together = ask(three)
    assert ask(three[:1]) == together[:1] and ask(three[:2]) == together[:2] and ask(three) == together
    twice = ask(three, samples=2)
    assert twice[::2] == together and all(one != other for one, other in zip(together, twice[1::2], strict=True))
    assert ask(three[:1], seed=1) != together[:1]
    again = ask(["the quick"] * 2)
    assert again[0] == together[0] != again[1]


def test_the_most_probable_text_does_not_depend_on_the_seed(model: Model) -> None:
    texts = [model.complete(["the quick"], 8, seed=seed, top_k=top_k)[0].text for seed, top_k in ((0, 0), (5, 0), (0, 3))]
    assert len(set(texts)) == 1 and texts[0].startswith("the quick")
    assert model.complete(["the quick"], 8, temperature=0.7, top_k=1)[0].text == texts[0]


@dataclasses.dataclass(frozen=True, eq=False)
class Scripted(Decoder):
    """Says after each token the one that `follows` names, by far, and keeps nothing."""

    follows: Mapping[int, int] = dataclasses.field(default_factory=dict)

    def empty(self, batch: int, places: int) -> tuple:
        return ()

    def extend(self, params: Any, cache: tuple, tokens: jax.Array, places: jax.Array, last: jax.Array) -> tuple[jax.Array, tuple]:
        table = np.zeros(len(self.allowed), np.int32)
        table[list(self.follows)] = list(self.follows.values())
        newest = jnp.take_along_axis(tokens, last[:, None], axis=1)[:, 0]
        return jax.nn.one_hot(jnp.asarray(table)[newest], len(self.allowed)) * 50, cache


def scripted(model: Model, *pieces: str) -> tuple[Decoder, Tokenizer]:
    """A decoder by which each of `pieces` follows the one before."""
    tokenizer = model.tokenizer
    ids = [next(i for i in range(tokenizer.vocabulary.size) if tokenizer.token(i) == piece) for piece in pieces]
    plain = decode.of(model.objective, tokenizer.vocabulary)
    return Scripted(plain.encoder, plain.head, plain.allowed, plain.ends, dict(itertools.pairwise(ids))), tokenizer


def test_where_a_text_ends(model: Model) -> None:
    """At the piece that ends texts, which is no part of it, after so many tokens, or where the model has no further position; of one batch
    each text by itself."""
    decoder, tokenizer = scripted(model, "quick", "brown", "[SEP]", "fox", "fox")
    ask = lambda texts, most: completing.complete_texts(decoder, {}, tokenizer, texts, most, Sampling(), 1)
    ends, goes_on, long = ask(["the quick", "fox", "fox " * 28], 20)
    assert (ends.text, ends.finish_reason, len(ends.tokens)) == ("the quick brown", "end", 1)
    assert (goes_on.text, goes_on.finish_reason, len(goes_on.tokens)) == ("fox" + " fox" * 20, "max_new", 20)
    # [CLS] and 28 words: three more fill the 32 positions.
    assert (long.text, long.finish_reason, len(long.tokens)) == ("fox " * 28 + "fox fox fox", "positions", 3)
    assert [one.finish_reason for one in ask(["fox " * 28], 3)] == ["max_new"]
    assert [(one.text, one.finish_reason) for one in ask(["the brown"], 5)] == [("the brown", "end")]


def test_a_special_piece_never_comes_however_probable(model: Model) -> None:
    """The model all but says [MASK]; the next probable piece comes instead."""
    decoder, tokenizer = scripted(model, "quick", "[MASK]")
    for rule in (Sampling(), Sampling(1.0), Sampling(1.0, 2)):
        (found,) = completing.complete_texts(decoder, {}, tokenizer, ["quick"], 1, rule, 1)
        assert "[MASK]" not in found.text and "[PAD]" not in found.text


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": lambda: wordpiece.train(LINES * 3, 2600),
    "bpe": lambda: bpe.train(LINES * 3, 2000),
    "word_bpe": lambda: word_bpe.train(LINES * 3, 2600),
    "unigram": lambda: unigram.train(LINES * 3, 2600),
}
SCRIPTS = ("devanagari", "thai", "arabic", "german", "korean", "cyrillic", "latin")
LINES = [line for name in SCRIPTS for line in SENTENCES[name]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_continuation_joins_its_prompt(kind: str) -> None:
    """Every sentence of seven scripts, cut after its first word: the prompt as it was written, and the rest of the sentence after one
    blank; in `bpe`, which keeps blanks, whatever stands there."""
    tokenizer = KINDS[kind]()
    for line in LINES:
        prompt, blank, rest = line.partition(" ")
        own, new = tokenizer.encode_start(prompt), tokenizer.encode([blank + rest])[0]
        assert own[0] == tokenizer.vocabulary.cls
        text = completing.joined(tokenizer, prompt, own, new)
        assert text.startswith(prompt + blank) and "  " not in text
        assert tokenizer.written(text).replace(" ", "") == tokenizer.written(line).replace(" ", "")
        if blank and kind != "bpe":
            assert completing.joined(tokenizer, prompt + " ", tokenizer.encode_start(prompt + " "), new) == text
        assert completing.joined(tokenizer, "", own[:1], own[1:] + new) == tokenizer.decode(own[1:] + new).lstrip()


def test_a_word_is_continued_without_a_blank() -> None:
    """The prompt keeps its case though the vocabulary has none."""
    tokenizer = wordpiece.train([TEXT, "play"] * 3, 90).extended(["##inging"])
    ids = tokenizer.encode_start("play")
    assert completing.joined(tokenizer, "PLAY", ids, [tokenizer.vocabulary.size - 1]) == "PLAYinging"


def test_a_prompt_is_text(model: Model) -> None:
    """A special token in a prompt is read as plain text, as in training data."""
    vocabulary, tokenizer = model.tokenizer.vocabulary, model.tokenizer
    for piece in (tokenizer.token(vocabulary.pad), tokenizer.token(vocabulary.sep)):
        assert not {vocabulary.pad, vocabulary.sep} & set(tokenizer.encode_start(f"the {piece} fox"))
    assert tokenizer.encode_start("") == [vocabulary.cls]


def test_a_vocabulary_without_a_frame_starts_with_the_text(published: Tokenizer) -> None:
    """And ends at --max-new or at the last position alone."""
    assert published.encode_start("The fox") == published.encode(["The fox"])[0]
    found = model_of(GPT, published).complete(["The fox", "the lazy dog"], 40, temperature=1.0)
    assert [one.finish_reason for one in found] == ["positions"] * 2
    assert found[0].text.startswith("The fox ") and "<unk>" not in found[0].text
    assert [len(one.tokens) + len(published.encode([one.prompt])[0]) for one in found] == [32, 32]


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"texts": "the"}, "complete takes a list of texts; give [text] for a single one"),
        ({"texts": ["the", 3]}, "complete takes a list of texts, and one item is a int"),
        ({"texts": ["the \ud800"]}, "which is not a character; give text in UTF-8"),
        ({"texts": ["the", "fox " * 31]}, "the text that begins with 'fox fox"),
        ({"texts": ["fox " * 31]}, "has 32 tokens and the model takes 32, which leaves none for a continuation; shorten it"),
        ({"texts": ["fox " * 90]}, "has 91 tokens and the model takes 32"),
        ({"max_new": 0}, "max_new is 0; it takes 1 or more"),
        ({"max_new": 1.5}, "max_new is 1.5; it takes a whole number"),
        ({"seed": "1"}, "seed is '1'; it takes a whole number"),
        ({"temperature": "1"}, "temperature is '1'; it takes a number"),
        ({"samples": 0}, "samples is 0; it takes 1 or more"),
        ({"samples": 2}, "samples is 2 and temperature 0, which gives one text; set a temperature above 0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_k": 1000}, "top_k is 1000; it takes 0 to"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_continued_is_one_line(arguments: dict, words: str, model: Model) -> None:
    with pytest.raises(UserError) as error:
        model.complete(**{"texts": ["the"], **arguments})
    assert words in str(error.value) and "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers(model: Model) -> None:
    given = {"max_new": np.int64(3), "temperature": np.float32(1), "top_k": np.int32(5), "seed": np.uint8(2), "samples": np.int16(2)}
    assert model.complete(["the"], **given) == model.complete(["the"], 3, 1.0, 5, 2, 2)


@pytest.mark.parametrize("text", ["", "  ", "\u200b"])
def test_nothing_to_start_from_is_one_line(text: str, published: Tokenizer) -> None:
    with pytest.raises(UserError, match="has no tokens and this vocabulary has no token that starts a text; give a text with a word"):
        model_of(GPT, published).complete([text])


def test_a_model_of_another_kind_is_one_line(published: Tokenizer) -> None:
    bare = dataclasses.replace(model_of(GPT, published), tokenizer=None)
    with pytest.raises(UserError, match="this model has no tokenizer"):
        bare.complete(["the"])
    masked = model_of(BertConfig(**SIZES), wordpiece.train([TEXT] * 3, 60), MlmConfig())
    with pytest.raises(UserError, match="does not predict the next token .* such as the recipe gpt/small"):
        masked.complete(["the"])


def test_no_text_is_no_work(model: Model) -> None:
    assert model.complete([]) == []
