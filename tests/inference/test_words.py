"""Vectors of words: deterministic for each sentence, or with ELMo's state as released; pieces of words for the other families."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxenc.convert import allennlp
from jaxenc.data.tokenizers import Tokenizer, bpe, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference import inputs, words
from jaxenc.inference.model import Model
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.families.elmo import folders

TEXT = "the quick brown fox jumps over the lazy dog, don't stop"
SENTENCES = [["the", "fox"], [], ["a"] * 11, ["naïve", "", "don't", "x" * 60, "🙂" * 13], ["dog"], ["fox", "the"], ["the", "fox"]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """An ELMo whose numbers are large enough that both clips are met."""
    values = {name: 2 * array for name, array in folders.arrays().items()}
    return allennlp.load(folders.write(tmp_path_factory.mktemp("elmo"), folders.options(), values))


def test_a_sentence_has_the_same_bits_whatever_stands_around_it(model: Model) -> None:
    """In another order, among others, twice in a batch, alone; and they are those of `encode` but for rounding (<= 1e-6 of the
    largest number)."""
    found = list(words.vectors(model, SENTENCES, 4))
    assert [array.shape for array in found] == [(3, len(sentence), 2 * folders.WIDTH) for sentence in SENTENCES]
    turned = list(words.vectors(model, [*SENTENCES[::-1], ["more"] * 9, ["and", "more"]], 4))
    alone = [next(words.vectors(model, [sentence], 4)) for sentence in SENTENCES]
    for i, array in enumerate(found):
        assert array.tobytes() == turned[len(SENTENCES) - 1 - i].tobytes() == alone[i].tobytes()
    assert found[0].tobytes() == found[-1].tobytes() and np.abs(found[0] - found[5][:, ::-1]).max() > 1e-3
    encoded = model.encode(words=SENTENCES)
    largest = np.abs(encoded.hidden).max()
    for i, array in enumerate(found):
        np.testing.assert_allclose(encoded.hidden[:, i, 1 : len(SENTENCES[i]) + 1], array, rtol=0, atol=1e-6 * largest)
        assert encoded.mask[i].sum() == len(SENTENCES[i]) + 2


def test_the_shape_that_is_computed_goes_by_the_sentence_alone(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a machine's bits depend on the shape, they depend on nothing else: a batch is full, a row as long as its own sentence asks."""
    shapes, started = [], Model.compute

    def given(self: Model, name: str, rows: dict) -> jax.Array:
        shapes.append((rows["segments"].shape[0], rows["segments"].sum(axis=1)))
        return started(self, name, rows)

    monkeypatch.setattr(Model, "compute", given)
    list(words.vectors(model, SENTENCES, 4))
    assert [count for count, _ in shapes] == [4, 4, 4]
    assert sorted(tuple(sorted(places)) for _, places in shapes) == [(0, 0, 0, 13), (0, 0, 4, 4), (2, 3, 4, 7)]


def test_the_top_layer_alone_is_that_of_all(model: Model) -> None:
    """Bit for bit."""
    for every, top in zip(words.vectors(model, SENTENCES, 4), words.vectors(model, SENTENCES, 4, top=True), strict=True):
        assert top.shape[0] == 1 and top.tobytes() == every[-1:].tobytes()


def test_the_state_goes_on_as_released(model: Model) -> None:
    """Slot by slot, markers and all, as one chain of `Elmo.text` over the rows of each; a last batch may be short (<= 1e-5)."""
    found = list(words.vectors(model, SENTENCES, 3, stateful=True))
    once = list(words.vectors(model, SENTENCES, 3))
    read, config = jax.jit(model.objective.readers.text), model.config.model
    for slot in range(3):
        state = None
        for i in range(slot, len(SENTENCES), 3):
            rows, _ = inputs.of_words(config, None, [SENTENCES[i], [""] * 11])
            state = model.objective.readers.zero_state(1) if state is None else state
            hidden, state = read(model.params, rows["tokens"][:1], rows["characters"][:1], rows["segments"][:1], state)
            np.testing.assert_allclose(found[i], hidden[:, 0, 1 : len(SENTENCES[i]) + 1], rtol=0, atol=1e-5)
    assert np.abs(found[6] - once[6]).max() > 1e-3
    np.testing.assert_allclose(found[0], once[0], rtol=0, atol=1e-5)


def test_words_that_are_odd_differ(model: Model) -> None:
    """Cut behind the 48th byte, within a character too; an empty word is one of no characters."""
    given = ["", "a", "x" * 48, "x" * 60, "x" * 47 + "é", "x" * 47 + "è", "🙂" * 12, "🙂" * 13, "é", "è"]
    first = next(words.vectors(model, [given]))[0]
    same = lambda one, other: first[one].tobytes() == first[other].tobytes()
    assert same(2, 3) and same(4, 5) and same(6, 7) and not same(0, 1) and not same(8, 9) and np.isfinite(first).all()


BERT = BertConfig(width=16, layers=2, heads=2, feed_forward=32, positions=80)
ROBERTA = dataclasses.replace(BERT, types=1, first_position=2)
XLNET = XlnetConfig(width=16, layers=2, heads=2, feed_forward=32)
BY_IDS = ElmoConfig(input="tokens", width=8, cells=12)
OTHERS = {
    "elmo by ids": (lambda: wordpiece.train([TEXT] * 6, 60), BY_IDS, FeaturesConfig()),
    "bert": (lambda: wordpiece.train([TEXT] * 6, 60), BERT, MlmConfig()),
    "roberta": (lambda: bpe.train([TEXT] * 6, 280), ROBERTA, MlmConfig()),
    "xlnet": (lambda: unigram.train([TEXT] * 18, 60), XLNET, PlmConfig(predictions=4, permutation=4, memory=0)),
}


@pytest.fixture(scope="module", params=list(OTHERS))
def other(request: pytest.FixtureRequest) -> Model:
    """A model that cuts words into pieces, most of them of another family."""
    make, config, objective = OTHERS[request.param]
    return of(make(), config, objective)


def of(tokenizer: Tokenizer, config: ModelConfig, objective) -> Model:
    run = Run(objective, config)
    run = dataclasses.replace(run, data=dataclasses.replace(run.data, length=16, reuse=8)).with_vocabulary(tokenizer.vocabulary)
    return Model(run, tiny.drawn(run), tokenizer.framed_as(config.row_frame))


def test_a_word_is_the_mean_of_its_pieces(other: Model) -> None:
    """Against the hidden states of the text that the words make, joined by blanks; a word without a piece is zero (<= 1e-5)."""
    sentence = ["the", "quick", "\u00ad", "don't", "", "lazydog"]
    found = next(words.vectors(other, [sentence]))
    ids, _, numbers = other.tokenizer.encode_split(sentence)
    encoded = other.encode([" ".join(word for word in sentence if word)])
    assert encoded.tokens[0].tolist() == ids
    for number in range(len(sentence)):
        places = [place for place, word in enumerate(numbers) if word == number]
        wanted = np.mean([encoded.hidden[:, 0, place] for place in places], axis=0) if places else np.zeros((3, 16))
        np.testing.assert_allclose(found[:, number], wanted, rtol=0, atol=1e-5)
    assert not found[:, 4].any() and sum(numbers.count(number) > 1 for number in range(6)) >= 2


def test_other_families_too_have_the_same_bits(other: Model) -> None:
    sentences = [["the", "fox"], ["dog"] * 5, [], ["quick", "lazy", "dog"], ["the", "fox"]]
    found, turned = (list(words.vectors(other, order, 4)) for order in (sentences, sentences[::-1]))
    assert all(one.tobytes() == two.tobytes() for one, two in zip(found, turned[::-1], strict=True))
    assert found[0].tobytes() == found[-1].tobytes()


def test_what_is_refused(other: Model, model: Model) -> None:
    if other.config.model.kind != "elmo":
        with pytest.raises(UserError, match="has no state from sentence to sentence"):
            next(words.vectors(other, [["the"]], stateful=True))
    for call, said in (
        (lambda: next(words.vectors(model, [["the"]], 0)), "the batch is 0; it takes 1 or more sentences"),
        (lambda: model.encode(["the fox"]), "this model has no tokenizer; convert it with one, or use encode(words=[[...]])"),
        (lambda: model.encode(tokens=[[1, 2]]), "this model has no tokenizer"),
        (lambda: model.encode(words="the fox"), "words=: not a list of sentences; give"),
        (lambda: model.encode(words=["the fox"]), "a sentence must be a list of words; give [word] for a single one"),
        (lambda: next(words.vectors(model, ["the fox"])), "a sentence must be a list of words; give [word] for a single one"),
        (
            lambda: next(words.vectors(model, [["the", 3]], stateful=True)),
            "a sentence must be a list of words, and one item is",
        ),
        (lambda: model.encode(words=[["the", 3]]), "and one item is a int"),
        (lambda: model.encode(words=[["the"]], tokens=[[1]]), "give one of the three"),
    ):
        with pytest.raises(UserError) as error:
            call()
        assert said in str(error.value) and "\n" not in str(error.value)
    if other.config.model.positions:
        with pytest.raises(UserError, match=r"the sentence that begins with 'fox the the .* has \d+ tokens and the model takes"):
            list(words.vectors(other, [["the"], ["fox", *["the"] * 100]]))


def test_memory_of_a_long_text_is_that_of_a_window(model: Model) -> None:
    """Sentences are taken as they are needed."""
    taken = []
    found = words.vectors(model, (taken.append(i) or ["a"] for i in range(10**9)), 2)
    next(found)
    assert len(taken) == 2 * words.WINDOW
