"""Unigram vocabularies: what follows a mask is the start of a word only after a blank; whole texts are read as in the corpus."""

import json
import random
from pathlib import Path

import pytest

from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.data.tokenizers.normalization import Normalization, section
from jaxenc.data.tokenizers.sentencepiece import unigram

TEXTS = ["昨天老师在银行工作。今天妈妈在图书馆看书。", "the fox and the dog ran home", "မြန်မာစကားကိုပြောသည်။", "שלום עולם a b"] * 20
# Letters, marks, white space of every kind, what normalisation removes, and the mark of a blank.
ALPHABET = "a bf 昨天行\u200e\u200f\ufeff\u00ad\u0301\u3000\n\t\x85\u2028▁မ်ှဿ\x1c\x0b\u200dﬁ"


@pytest.fixture(scope="module", params=[Normalization(), Normalization("nfkc", True, True), Normalization("none")], ids=lambda r: r.form)
def tool(request: pytest.FixtureRequest) -> Tokenizer:
    return unigram.train(TEXTS, 150, request.param)


def pieces(tool: Tokenizer, text: str) -> list[str]:
    """Without the frame `<sep> <cls>`."""
    return [tool.token(index) for index in tool.encode_prompt(text)[:-2]]


def test_the_text_after_a_mask_goes_on_with_the_word_where_no_blank_is(tool: Tokenizer) -> None:
    assert pieces(tool, "昨<mask>行") == ["▁", "昨", "<mask>", "行"]
    assert pieces(tool, "昨 <mask> 行") == ["▁", "昨", "<mask>", "▁", "行"]
    assert pieces(tool, "<mask>行") == ["<mask>", "行"]


def test_a_whole_text_gives_the_ids_of_the_corpus(tool: Tokenizer) -> None:
    draw = random.Random(0)
    texts = ["".join(draw.choice(ALPHABET) for _ in range(draw.randint(0, 10))) for _ in range(2000)]
    for text, ids in zip(texts, tool.encode(texts), strict=True):
        assert tool.encode_prompt(text)[:-2] == ids, repr(text)


def test_a_folder_opens_with_the_same_rules(tool: Tokenizer, tmp_path: Path) -> None:
    tool.save(tmp_path / "out")
    again = tokenizers.load(tmp_path / "out")
    assert (again.vocabulary, again.definition) == (tool.vocabulary, tool.definition)
    assert pieces(again, "昨<mask>行") == ["▁", "昨", "<mask>", "行"]


def test_a_folder_whose_parts_all_start_words_opens_as_the_same_vocabulary(tool: Tokenizer, tmp_path: Path) -> None:
    """Such a folder keeps its rule: white space cuts words, and each part of a text begins one, as in transformers' XLNet."""
    tool.save(tmp_path / "out")
    path, rule = tmp_path / "out" / "tokenizer.json", json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    normalizer = Normalization(rule["normalize"], rule["do_lower_case"], rule["strip_accents"]).normalizer(clean=True)
    marked = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    splitter = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, marked]}
    empty = {"type": "Sequence", "normalizers": []}
    data = json.loads(path.read_text()) | {"normalizer": section(normalizer) or empty, "pre_tokenizer": splitter}
    path.write_text(json.dumps(data))
    again = tokenizers.load(tmp_path / "out")
    assert again.vocabulary == tool.vocabulary and pieces(again, "昨<mask>行") == ["▁", "昨", "<mask>", "▁", "行"]
    assert json.loads(again.definition)["pre_tokenizer"] == splitter
