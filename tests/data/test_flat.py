"""Cached words give the library's ids: `encode_flat` against `encode_words`, which does not use the cache."""

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe, word_cache, word_list, wordpiece
from jaxenc.data.tokenizers.normalization import choices
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.word_table import WordTable
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from tests.data.scripts import SENTENCES
from tests.data.test_sentencepiece import NASTY, XLNET, model_of

LINES = [line for lines in SENTENCES.values() for line in lines]
TRAIN = {
    "wordpiece": lambda rule: wordpiece.train(LINES * 2, 2000, rule),
    "bpe": lambda rule: bpe.train(LINES * 2, 600, rule),
    "word_bpe": lambda rule: word_bpe.train(LINES * 2, 2000, rule),
    "unigram": lambda rule: unigram.train(LINES * 2, 1500, rule),
    "characters": lambda rule: word_list.train(LINES * 2, 100, rule),
    "pretokenized": lambda rule: word_list.train(LINES * 2, 100, rule, True),
}
# What may look across a blank: marks, joiners, prepended signs, voiced marks, vowels that join, white space of all kinds, blanks in a
# compatibility form, contractions, marks of the vocabularies, a final sigma, long words
ODD = [
    *("\u0301", "\u0e38", "\u0e33", "\u0eb3", "\u200d", "\u200c", "\u0600", "\u06dd", "\u0d4e"),
    *("\uff9e", "\u3099", "🏽", "\U000e0067", "\u1161"),
    *("\t", "\n", "\x0b", "\x1c", "\x85", "\u00a0"),
    *("\u2003", "\u3000", "\u2028", "\u180e", "\u200b", "\u00a8", "\u037a", "\ufc5e", "\u2017"),
    *("'s", "'", "don't", "``", "''", "▁", "Ġ", "##a", "[MASK]", "<eop>", "<mask>"),
    *("</w>", "ΣΟΦΟΣ", "Σ", "中", "中国", "a" * 99, "ก" * 130),
    *("cafe", "zq", "zqcafe", "zqé", "zqe\u0301s", "don'sx", "of", "the", "of the", "'sx", "don't", "caf\u00e9"),
    *("\0", "\ufffd", "\ufeff", "\u00ad", "é", "e\u0301", "ﬁ", "½", "İ", "가"),
    *("각", "👨‍👩‍👧", "12", "٣", "3.14", "x" * 14, "x" * 15, "x" * 16),
]
TEXTS = st.lists(st.sampled_from([" ", " ", "  ", *ODD, *" ".join(LINES).split()[:40]]) | st.text(max_size=3), max_size=14).map("".join)


def same(tool: Tokenizer, texts: list[str]) -> None:
    found, expected = tool.encode_flat(texts), tool.encode_words(texts)
    assert (found.tokens.dtype, found.lengths.dtype, found.words.dtype) == (np.uint32, np.int64, bool)
    assert found.lengths.tolist() == [len(ids) for ids, _ in expected]
    ends = np.cumsum(found.lengths)
    for text, end, (ids, numbers) in zip(texts, ends, expected, strict=True):
        assert found.tokens[end - len(ids) : end].tolist() == ids, text
        starts = [n == 0 or numbers[n] != numbers[n - 1] for n in range(len(ids))]
        assert found.words[end - len(ids) : end].tolist() == starts, text


def mixed(count: int, seed: int) -> list[str]:
    """Lines of words of all scripts, odd ones and blanks among them."""
    draw, words = random.Random(seed), " ".join(LINES).split()
    gaps = [" "] * 12 + ["  ", "   ", "\u00a0", "\t", ""]

    def line() -> str:
        parts = (draw.choice(gaps) + draw.choice(ODD if draw.random() < 0.15 else words) for _ in range(draw.randint(0, 8)))
        return "".join(parts) + draw.choice(["", "", " ", "  "])

    return [line() for _ in range(count)]


@pytest.fixture(scope="module", params=[*TRAIN, "published wordpiece", "published unigram", "added", "added wide", "added to unigram"])
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return made(request.param, tmp_path_factory)


def made(kind: str, folders: pytest.TempPathFactory) -> Tokenizer:
    if kind in TRAIN:
        return TRAIN[kind](choices()[0])
    more: dict[str, Callable[[], Tokenizer]] = {
        "published wordpiece": lambda: _published_wordpiece(folders),
        "published unigram": lambda: load(model_of(folders.mktemp("xlnet"), **XLNET, texts=LINES, vocab_size=1500)),
        "added": lambda: bpe.train(LINES, 600).extended(["cafe", "zq", "中国", "'sx"]),
        "added wide": lambda: bpe.train(LINES, 600).extended(["of the", " zq", "a\tb"]),
        "added to unigram": lambda: unigram.train(LINES, 1500).extended(["zqé", "don'sx"]),
    }
    return more[kind]()


def _published_wordpiece(folders: pytest.TempPathFactory) -> Tokenizer:
    folder = folders.mktemp("bert")
    wordpiece.train(LINES, 2000).save(folder)
    return wordpiece.from_vocab(folder / "vocab.txt", PublishedRules(True, True))


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.full)])
def test_lines_of_all_scripts(tool: Tokenizer, count: int) -> None:
    """Some at a time, so that most words of the later ones are cached."""
    lines = [*LINES, *NASTY, *mixed(count, 1)]
    for start in range(0, len(lines), count // 5):
        same(tool, lines[start : start + count // 5])


RULED = [
    pytest.param(kind, rule, id=f"{kind}-{rule}", marks=[] if (at + number) % 3 == 0 else pytest.mark.full)
    for at, kind in enumerate(TRAIN)
    for number, rule in enumerate(choices())
]


@pytest.mark.parametrize("kind, rule", RULED)
def test_every_normalization(kind: str, rule) -> None:
    """Of each type every third rule in the short suite, so that each rule has a third of the types."""
    tool, lines = TRAIN[kind](rule), [*LINES, *NASTY, *mixed(100, 2)]
    same(tool, lines)
    same(tool, lines[::-1])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXTS, max_size=4))
@example(["of the a\tb", " of  the", "x \u0301", "\u0600 a", "a 🏽 b", ""])
def test_random_texts_with_odd_blanks(tool: Tokenizer, texts: list[str]) -> None:
    same(tool, texts)


def test_memory_is_bounded(monkeypatch) -> None:
    """It is emptied when it holds enough, and the ids stay those of the library."""
    tool = wordpiece.train(LINES, 2000)
    empty = tool._cache.nbytes
    monkeypatch.setattr(word_cache, "MOST_BYTES", empty + 10_000)
    held = []
    for line in [*LINES, *mixed(300, 4)]:
        same(tool, [line])
        held.append(tool._cache.nbytes - empty)
    assert 10_000 < max(held) < 20_000 and sum(after < before for before, after in itertools.pairwise(held)) > 3


def test_cached_words_are_not_encoded_again(monkeypatch) -> None:
    tool = bpe.train(LINES, 600)
    tool.encode_flat(["to be or not to be"])
    monkeypatch.setattr(tool._cache, "_encode", lambda texts: [] if not texts else pytest.fail(f"{texts} encoded again"))
    assert tool.encode_flat(["to not be"]).lengths.sum() > 0


def test_the_table_of_words() -> None:
    """Against a dict, from a small table on, words that end in zeros and long ones among them."""
    draw = random.Random(5)
    words = list({bytes(draw.choices(b"ab\0", k=draw.randint(1, 18))) for _ in range(3000)} | {b"\0" * n for n in range(1, 20)})
    table, held = WordTable(4), {}
    for start in range(0, len(words), 100):
        some = words[start : start + 100]
        table.add(some, np.arange(start, start + len(some), dtype=np.int32))
        held |= {word: start + n for n, word in enumerate(some)}
        lengths = np.array([len(word) for word in words])
        found = table.find(b"".join(words), np.cumsum(lengths) - lengths, lengths)
        assert found.tolist() == [held.get(word, -1) for word in words]


def test_a_folder_that_is_loaded_remembers_too(tmp_path) -> None:
    bpe.train(LINES, 600).save(tmp_path)
    same(load(tmp_path), LINES)


def test_a_table_of_characters_that_reads_across_a_blank(tmp_path) -> None:
    """A model whose own table makes x of a blank with an acute after it: such a word is not read by itself."""
    (tmp_path / "rule.tsv").write_text("20 301\t78\n41\t61\n")
    model_of(tmp_path, **XLNET, texts=LINES, vocab_size=1500, normalization_rule_tsv=str(tmp_path / "rule.tsv"))
    (tmp_path / "tokenizer_config.json").write_text('{"keep_accents": true}')
    tool = load(tmp_path)
    assert tool.encode(["a \u0301b"]) != [[*tool.encode(["a"])[0], *tool.encode(["\u0301b"])[0]]]
    same(tool, ["a", "\u0301b", "b"])
    same(tool, ["a \u0301b", "A \u0301b b", "\u0301b a"])
