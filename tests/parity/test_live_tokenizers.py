"""Our tokenizer folders in transformers and back: the same ids for every text, nothing fetched, nothing warned of."""

import json
import logging
import tempfile
import unicodedata
from pathlib import Path

import pytest
import sentencepiece as library
import transformers

from jaxenc.data.tokenizers import bpe, load, word_bpe, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from tests.data import word_bpe_files
from tests.data.scripts import SENTENCES
from tests.selection import thinned

SCRIPTS = [line for script in ("tibetan", "devanagari", "persian", "khmer", "korean", "vietnamese", "latin") for line in SENTENCES[script]]
TEXT = ["The quick brown fox jumps over the lazy dog.", "Kantō Ångström İstanbul 京都 сад", "don't I'll we've 12 3.5", *SCRIPTS] * 4
TEXTS = [
    *(
        "hello world",
        "  two  blanks ",
        "a\tb\n\nc\r\n",
        "\u00a0x\u00a0",
        "\0 a\0b",
        "\u0e38",
        "\u0301a",
        "",
        "   ",
        "\x85\u2028\u200b\ufeff\ufffd",
        "안녕하세요 세계 \u1112\u1161",
    ),
    *("🥱 📷🤏 🦾 👨‍👩‍👧 🇮🇸 👍🏽", "สวัสดีชาวโลก", "日本語。世界!", "é e\u0301 ﬁ İ", "x" * 10_000, "dog " * 2_000, "shoot\x97 TOO"),
    *("I go to {mask} today", "a{mask}b", "{mask}", "{mask}  {mask}", "{cls}x{sep} {pad} {unk} y"),
]
NEW = ["newton", "<new>", "京都町"]


def published(rules):
    """A vocabulary that is read by BERT's own rule."""
    with tempfile.TemporaryDirectory() as folder:
        wordpiece.train(TEXT, 500, Normalization("nfc", rules.lowercase, rules.strip_accents)).save(folder)
        return wordpiece.from_vocab(Path(folder) / "vocab.txt", rules)


def xlnet(lowercase, keep_accents):
    """A model that the sentencepiece library made by the published flags, nmt_nfkc among them, opened by XLNet's rule."""
    names = {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], "user_defined_symbols": ["<eop>", ".", "(", ")", "-"]}
    with tempfile.TemporaryDirectory() as folder:
        options = {"model_prefix": f"{folder}/spiece", "vocab_size": 400, "hard_vocab_limit": False, "minloglevel": 2}
        library.SentencePieceTrainer.train(sentence_iterator=iter([*TEXT, "안녕하세요 세계"]), **options, **names)
        (Path(folder) / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase, "keep_accents": keep_accents}))
        return load(folder)


def gpt(standardize):
    """The two files of a published vocabulary, whose only special piece is <unk>."""
    with tempfile.TemporaryDirectory() as folder:
        made = word_bpe_files.write(Path(folder), TEXT, 500)
        (made / "tokenizer_config.json").write_text(json.dumps({"standardize": standardize}))
        return load(made)


def japanese():
    """Cased, accents kept, Chinese characters together, as the Japanese BERTs have it."""
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "日本",
        "日",
        "##本",
        "##語",
        "世界",
        "!",
        "京",
        "##都",
        "##町",
        *"abcdefghijklmnop",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("".join(f"{piece}\n" for piece in pieces))
        return wordpiece.from_vocab(path, PublishedRules(False, False, split_chinese=False))


KINDS = {
    "bpe": lambda: bpe.train(TEXT, 300),
    "bpe, published": lambda: bpe.train(TEXT, 300, Normalization("none")),
    "bpe, nfkc": lambda: bpe.train(TEXT, 300, Normalization("nfkc", True, True)),
    "bpe, added": lambda: bpe.train(TEXT, 300).extended([*NEW, " café"]),
    "word_bpe": lambda: word_bpe.train(TEXT, 500),
    "word_bpe, lower": lambda: word_bpe.train(TEXT, 500, Normalization("nfkc", True, True)),
    "word_bpe, as it is": lambda: word_bpe.train(TEXT, 500, Normalization("none")),
    "word_bpe, added": lambda: word_bpe.train(TEXT, 500).extended(["newton", "æ", "newto"]),
    "word_bpe, published": lambda: gpt(standardize=False),
    "word_bpe, standardized": lambda: gpt(standardize=True),
    "word_bpe, published, added": lambda: gpt(standardize=False).extended(["_start_", "newton", "_delimiter_", "_classify_", "<pad>"]),
    "wordpiece": lambda: wordpiece.train(TEXT, 500),
    "wordpiece, lower": lambda: wordpiece.train(TEXT, 500, Normalization("nfkc", True, True)),
    "wordpiece, as it is": lambda: wordpiece.train(TEXT, 500, Normalization("none")),
    "wordpiece, published": lambda: published(PublishedRules(True, True)),
    "wordpiece, published cased": lambda: published(PublishedRules(False, False)),
    "wordpiece, japanese": japanese,
    "unigram": lambda: unigram.train(TEXT, 500),
    "unigram, added": lambda: unigram.train(TEXT, 500).extended(["newton", "京都町"]),
    "unigram, lower": lambda: unigram.train(TEXT, 500, Normalization("nfkc", True, True)),
    "unigram, as it is": lambda: unigram.train(TEXT, 500, Normalization("none")),
    "unigram, published": lambda: xlnet(lowercase=False, keep_accents=False),
    "unigram, published, accents kept": lambda: xlnet(lowercase=True, keep_accents=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beside", thinned([True, False], True))
def test_r01_a_folder_of_ours_is_the_same_tokenizer_there_and_back(kind, beside, tmp_path, caplog, monkeypatch):
    """beside: alone, or beside a model's config.json, whose type has a tokenizer class with a rule of its own there."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)  # so that caplog sees its warnings
    ours = KINDS[kind]()
    ours.save(tmp_path / "ours")
    if beside:
        family = {"wordpiece": "bert", "bpe": "roberta", "word_bpe": "openai-gpt", "unigram": "xlnet"}[kind.split(",")[0]]
        (tmp_path / "ours" / "config.json").write_text(json.dumps({"model_type": family}))
    with caplog.at_level(logging.WARNING):
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert not caplog.records and len(theirs) == ours.vocabulary.size
    names = ("pad", "unk", "cls", "sep", "mask")
    for name in names:
        index = getattr(theirs, f"{name}_token_id")
        # Ours pads with the unknown piece where there is no other.
        lacking = ours.vocabulary.unk if name == "pad" else -1
        assert (lacking if index is None else index) == getattr(ours.vocabulary, name), name
    theirs.save_pretrained(tmp_path / "theirs")
    back = load(tmp_path / "theirs")
    forms, rare = [unicodedata.normalize("NFD", text) for text in SCRIPTS], []
    for text in [*TEXTS, *TEXT[: len(TEXT) // 4], *forms, *NEW, "a newton<new>b x newtons  café"]:
        text = text.format(**{name: getattr(theirs, f"{name}_token") for name in names})
        ids = theirs(text)["input_ids"]
        assert ids == back.encode_prompt(text), text
        if ours.only_here and ours.encode_prompt(text) != ids:
            rare.append(text)  # as the line says that `jaxenc export` prints
            continue
        assert ours.encode_prompt(text) == ids, text
        assert ours.encode([text]) == back.encode([text])
        if kind.startswith(("bpe", "word_bpe")):
            assert theirs.decode(ids) == ours.decode(ids), text
    assert len(rare) <= 3 and bool(rare) == bool(ours.only_here)
