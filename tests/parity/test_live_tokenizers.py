"""Our tokenizer folders in transformers and back: the same ids for every text, nothing fetched, nothing warned of."""

import logging
import tempfile
from pathlib import Path

import pytest
import transformers

from jaxenc.data.tokenizers import bpe, load, sentencepiece, wordpiece
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules

TEXT = ["The quick brown fox jumps over the lazy dog.", "Kantō Ångström İstanbul 京都 сад", "don't I'll we've 12 3.5"] * 4
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
    "bpe, added": lambda: bpe.train(TEXT, 300).extended([*NEW, " café"]),
    "wordpiece": lambda: wordpiece.train(TEXT, 120),
    "wordpiece, cased": lambda: wordpiece.train(TEXT, 140, lowercase=False, strip_accents=False),
    "wordpiece, japanese": japanese,
    "unigram": lambda: sentencepiece.train(TEXT, 120),
    "unigram, added": lambda: sentencepiece.train(TEXT, 120).extended(["newton", "京都町"]),
    "unigram, korean": lambda: sentencepiece.train([*TEXT, "안녕하세요 세계"], 120),
    "unigram, accents kept": lambda: sentencepiece.train(TEXT, 120, lowercase=True, strip_accents=False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_ours_is_the_same_tokenizer_there_and_back(kind, tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)  # so that caplog sees its warnings
    ours = KINDS[kind]()
    ours.save(tmp_path / "ours")
    with caplog.at_level(logging.WARNING):
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert not caplog.records and len(theirs) == ours.vocabulary.size
    names = ("pad", "unk", "cls", "sep", "mask")
    assert [getattr(theirs, f"{name}_token_id") for name in names] == [getattr(ours.vocabulary, name) for name in names]
    theirs.save_pretrained(tmp_path / "theirs")
    back = load(tmp_path / "theirs")
    for text in [*TEXTS, *TEXT, *NEW, "a newton<new>b x newtons  café"]:
        text = text.format(**{name: getattr(theirs, f"{name}_token") for name in names})
        ids = theirs(text)["input_ids"]
        assert ours.encode_prompt(text) == ids == back.encode_prompt(text), text
        assert ours.encode([text]) == back.encode([text])
        if kind.startswith("bpe"):
            assert theirs.decode(ids) == ours.decode(ids), text
