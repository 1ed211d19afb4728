"""GPT-1's vocabulary against the tokenizer of transformers, on 2,000 texts."""

import random
from pathlib import Path

import pytest
import transformers

from jaxenc.data.tokenizers import Tokenizer, load
from tests.data import word_bpe_files
from tests.data.scripts import SENTENCES

ENGLISH = ["The quick brown fox jumps over the lazy dog, don't you think so?", "I'll say (again): 12.5 % of them... are “here”."]
ALL = [*ENGLISH, *(line for lines in SENTENCES.values() for line in lines)]
# What a text is made of, beside words of forty scripts.
HARD = [
    *("...", "?!?!", "--", "((", "'s", "n't", "_", "$5", "^", "`", "“", "”", "—", "…", "´", "¿", "。", "、"),
    *("É", "e\u0301", "ﬁ", "İ", "I\u0307", "ß", "ẞ", "Å", "\u212b", "ñ\u0303", "\u0301", "\u0e38", "o\u0302\u0323", "Ὀδυσσεύς", "ΣΊΣΥΦΟΣ"),
    *("京都", "日本語", "안녕", "\u1112\u1161", "ガ", "\uff21\uff22", "🥱", "👨‍👩‍👧", "🇮🇸", "👍🏽", "☃", "\U0001f600\ufe0f"),
    *(" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\x85", "\0"),
    *("\x01", "\x7f", "\x97", "\u200b", "\u200d", "\ufeff", "\u00ad", "\ufffd"),
    *("<unk>", "<UNK>", "</w>", "the</w>", "x" * 120, "ab" * 60, "_start_"),
]  # fmt: skip


def texts(count: int) -> list[str]:
    """Words of ALL, whole and cut, in any case, with pieces of HARD between them."""
    rng = random.Random(0)
    words = [word for line in ALL for word in line.split()]
    out = ["", " ", *ALL]
    while len(out) < count:
        parts = []
        for _ in range(rng.randint(1, 12)):
            word = rng.choice(words)
            change = rng.choice([str, str.upper, str.title, lambda word: word[: rng.randint(1, len(word))]])
            parts += [rng.choice([change(word), rng.choice(HARD)]), rng.choice([" ", " ", "", rng.choice(HARD)])]
        out.append("".join(parts))
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return word_bpe_files.write(tmp_path_factory.mktemp("gpt") / "files", ALL * 3, 1500)


@pytest.mark.parametrize("written", ["vocab.json", "tokenizer.json"])
def test_the_ids_are_those_of_transformers(folder: Path, written: str, tmp_path: Path) -> None:
    """From GPT-1's own two files, and from the tokenizer.json that transformers writes of them."""
    theirs = transformers.OpenAIGPTTokenizer.from_pretrained(folder)
    if written == "tokenizer.json":
        theirs.save_pretrained(tmp_path / "saved")
        folder = tmp_path / "saved"
        assert not (folder / "vocab.json").exists()
    ours: Tokenizer = load(folder)
    asked = texts(2000)
    expected = theirs(asked)["input_ids"]
    assert [ours.encode_prompt(text) for text in asked] == expected
    plain = [n for n, text in enumerate(asked) if "<unk>" not in text]
    assert ours.encode([asked[n] for n in plain]) == [expected[n] for n in plain] and len(plain) > 1500
    unknown = sum(ours.vocabulary.unk in ids for ids in expected)
    assert unknown > 200 and len(asked) - unknown > 200 and len({index for ids in expected for index in ids}) > 800
