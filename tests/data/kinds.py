"""Small vocabularies of every type, for tests that go through all of them."""

from collections.abc import Callable

from jaxenc.data.tokenizers import Tokenizer, bpe, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram

TEXT = ["the cat sat on the old red mat.", "a dog ran under the tall green tree.", "birds flew over the hill by the sea."] * 4
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": lambda: wordpiece.train(TEXT, 120),
    "bpe": lambda: bpe.train(TEXT, 300),
    "word_bpe": lambda: word_bpe.train(TEXT, 120),
    "unigram": lambda: unigram.train(TEXT, 60),
    "characters": lambda: word_list.train(TEXT, 120),
}
