"""The ids of the sentences of a line are those of the line, whatever the script and the kind of vocabulary."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import manifest
from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import Tokenizer, bpe, line_ids, load, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from tests.data import spiece_models
from tests.data.scripts import SENTENCES

TEXTS = [line for lines in SENTENCES.values() for line in lines]
MARKS = ["။", "。", "！", "？", "।", "។", "؟", "．", ". ", "! ", "。」", "。“", "။ ", "၊"]
MADE: dict[str, Callable[[Path], Tokenizer]] = {
    "wordpiece": lambda path: wordpiece.train(TEXTS * 2, 2000),
    "word_bpe": lambda path: word_bpe.train(TEXTS * 2, 2000),
    "bpe": lambda path: bpe.train(TEXTS * 2 + ["。“。“။“。」。“"] * 9, 700),
    "unigram": lambda path: unigram.train(TEXTS * 2, 1500),
    "characters": lambda path: word_list.train(TEXTS * 2, 100),
    "pretokenized": lambda path: word_list.train(TEXTS * 2, 100, pretokenized=True),
}
MODELS = [
    "unigram",
    "bpe",
    "identity",
    "no add_dummy_prefix",
    "no remove_extra_whitespaces",
    "treat_whitespace_as_suffix",
    "no split_by_whitespace",
]
MADE |= {
    f"model: {name}": lambda path, name=name: load(spiece_models.folder(path / "m", spiece_models.trained(**spiece_models.SETTINGS[name])))
    for name in MODELS
}


@pytest.fixture(scope="module", params=list(MADE))
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return MADE[request.param](tmp_path_factory.mktemp("vocabulary"))


def mixed(count: int) -> list[str]:
    """Lines of sentences of all scripts, with and without blanks between them."""
    draw = random.Random(0)
    parts = lambda: (draw.choice(TEXTS).rstrip(".။。!?।៖") + draw.choice(MARKS) for _ in range(draw.randint(1, 5)))
    return ["".join(parts()) for _ in range(count)] + [
        "",
        "  ",
        " A b. C. ",
        "。",
        "။။ က",
        "zq。X",
        "Ab.\x1cCd.\x1f Ef.\tGh.",
        "我爱。\u3000他。",
        "Ab.\xa0Cd.\x85Ef. 他。",
    ]


def test_they_are_those_of_the_line(tool: Tokenizer) -> None:
    lines = mixed(300)
    found, counts = line_ids.encode(tool, lines)
    sentences = [tool.sentences(line) for line in lines]
    assert counts.tolist() == [len(some) for some in sentences] and len(found.lengths) == counts.sum() > 304
    ends = np.concatenate([[0], np.cumsum(found.lengths)])
    assert found.words[ends[:-1][found.lengths > 0]].all()
    first = 0
    for line, count, ids in zip(lines, counts.tolist(), tool.encode([line.strip() for line in lines]), strict=True):
        assert found.tokens[ends[first] : ends[first + count]].tolist() == ids, line
        first += count
    assert first == counts.sum()


def test_each_piece_is_in_the_sentence_of_its_first_character(tool: Tokenizer) -> None:
    """By the offsets of the whole line, a piece at a time."""
    lines = [line for line in mixed(60) if len(tool.sentences(line)) > 1]
    found, counts = line_ids.encode(tool, lines)
    at = 0
    for line, count, (_, places) in zip(lines, counts.tolist(), tool.encode_offsets([line.strip() for line in lines]), strict=True):
        ends = np.cumsum([len(sentence) for sentence in tool.sentences(line)])
        owners = np.minimum(np.searchsorted(ends, [start for start, _ in places], "right"), count - 1)
        shares = np.bincount(owners, minlength=count).tolist()
        lengths = found.lengths[at : at + count].tolist()
        # Where a blank ends up, in the piece before it or after it, is a matter of the kind of vocabulary.
        assert sum(lengths) == sum(shares) and (lengths == shares or any(map(str.isspace, line.strip()))), line
        at += count


@pytest.mark.parametrize("line", ["ကျွန်တော်သွားသည်။သူလာသည်။", "我走了。他来了。", "ខ្ញុំទៅផ្ទះ។គាត់មកវិញ។"])
def test_a_row_has_no_mark_of_a_blank_that_the_line_lacks(line: str, tmp_path: Path) -> None:
    """As it was reported: unigram wrote `▁` before the second sentence."""
    unigram.train([line, *TEXTS] * 4, 1500).save(tmp_path / "tokenizer")
    (tmp_path / "text.txt").write_text("\n\n".join([line] * 3), encoding="utf-8")
    result = build([str(tmp_path / "text.txt")], tmp_path / "tokenizer", tmp_path / "data", held_out=0)
    tool, shards = load(tmp_path / "tokenizer"), open_split(tmp_path / "data", "train")
    tokens = shards.tokens.take(np.arange(len(shards.tokens))).tolist()
    assert tokens == tool.encode([line])[0] * 3 and result.splits["train"].sentences == 6
    assert sum(tool.token(index).startswith("▁") for index in tokens) == 3


def test_a_folder_of_older_rules_is_named(corpus: Path, tokenizer: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept, since most text is the same by both."""
    made = build([str(corpus)], tokenizer, tmp_path / "out", 0.2)
    again = lambda: build([str(corpus)], tokenizer, tmp_path / "out", 0.2).fingerprint == made.fingerprint
    assert again() and "older jaxenc" not in capsys.readouterr().err
    path = tmp_path / "out" / manifest.NAME
    path.write_text(path.read_text().replace(f' "rules": {manifest.RULES},\n', ""))
    assert again() and "out was made by an older jaxenc" in capsys.readouterr().err
