"""Texts that are split into words already: which piece belongs to which word."""

import pytest

from jaxenc.data.tokenizers import Tokenizer, bpe, word_bpe, wordpiece
from jaxenc.data.tokenizers import word_list as word_lists
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError

TEXT = "The quick brown fox jumps over the lazy dog, again and again, don't stop 東京 naïve 🙂."
MADE = {
    "wordpiece": lambda: wordpiece.train([TEXT] * 6, 90),
    "bpe": lambda: bpe.train([TEXT] * 6, 300),
    "word_bpe": lambda: word_bpe.train([TEXT] * 6, 90),
    "unigram": lambda: unigram.train([TEXT] * 18, 60),
}
WORDS = ["The", "quick", "don't", "New York", "", " ", "fox,", "東京タワー", "naïve", "🙂🙂", "\u200b", "[MASK]", "</s>", "dog"]


@pytest.fixture(scope="module", params=list(MADE))
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return MADE[request.param]()


def test_each_word_has_its_own_pieces(tokenizer: Tokenizer) -> None:
    """The pieces of a word are those that it gives alone, behind a first word as here; the others around it are special."""
    ids, types, words = tokenizer.encode_split(WORDS)
    inner = [word for word in words if word >= 0]
    assert len(ids) == len(types) == len(words) and inner == sorted(inner)
    for number, word in enumerate(WORDS[1:], 1):
        alone = tokenizer.encode_split(["The", word])
        assert [i for i, w in zip(ids, words, strict=True) if w == number] == [i for i, w in zip(*alone[::2], strict=True) if w == 1], word
    assert not {4, 5} & set(words) and {*range(len(WORDS))} - {4, 5, 10} <= set(words)


def test_a_piece_that_is_only_the_space_belongs_to_the_word_after_it() -> None:
    """In byte-level BPE without merges the space before a word is a piece of its own."""
    made = bpe.train(["x"], 261 + 1)
    ids, _, words = made.encode_split(["ab", "", "c"])
    assert [made.token(index) for index in ids] == ["<s>", "a", "b", "Ġ", "c", "</s>"]
    assert words == [-1, 0, 0, 2, 2, -1]


def test_it_is_framed_as_a_text_and_taken_literally(tokenizer: Tokenizer) -> None:
    split = ["The", "quick", "fox"]
    ids, types, words = tokenizer.encode_split(split)
    assert (ids, types) == tokenizer.encode_framed(" ".join(split))
    assert [i for i, word in zip(ids, words, strict=True) if word >= 0] == tokenizer.encode(["The quick fox"])[0]
    assert tokenizer.vocabulary.mask not in tokenizer.encode_split(["[MASK]", "<mask>"])[0]


def test_nothing_is_the_frame_alone(tokenizer: Tokenizer) -> None:
    for nothing in ([], [""]):
        ids, _, words = tokenizer.encode_split(nothing)
        assert ids == tokenizer.encode_prompt("") and set(words) == {-1}


def test_half_a_character_is_one_line(tokenizer: Tokenizer) -> None:
    for made in (tokenizer, word_lists.train([TEXT], 8)):
        for ask in (made.encode_split, lambda words, made=made: made.split(" ".join(words))):
            with pytest.raises(UserError, match="is not a character"):
                ask(["a", "\ud800"])


def test_a_vocabulary_of_words_cuts_no_word() -> None:
    """Each gives one place: also one that is unknown, empty, spelled as a marker, or that a text would have cut."""
    for lowercase in (False, True):
        made = word_lists.train([TEXT], 8, Normalization(lowercase=lowercase))
        known = lambda word, made=made: made.encode([word])[0][0]
        ids, types, words = made.encode_split(["The", "don't", "", "<S>", "quick"])
        assert ids == [0, known("The"), 2, 2, 2, known("quick"), 1] and known("The") != 2
        assert types == [0] * 7 and words == [-1, 0, 1, 2, 3, 4, -1]


CUT = {
    "wordpiece": "The|quick|don|'|t|,|stop|東|京|.",
    "bpe": "The|quick|don|'t|,|stop|東京|.",
    "word_bpe": "The|quick|don|'|t|,|stop|東|京|.",
    "unigram": "The|quick|don't,|stop|東京.",
}


@pytest.mark.parametrize("kind, cut", CUT.items())
def test_the_words_of_a_text(kind: str, cut: str) -> None:
    """As the splitter cuts them, as they are read: without the signs that pieces carry."""
    assert MADE[kind]().split("The quick  don't, stop 東京.") == cut.split("|")
