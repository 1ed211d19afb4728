"""Framing: rows of one and two texts against a loop that takes tokens off one by one."""

from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import tokenizers
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.tasks.framing import Framing

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "tokenizers"
WORDPIECE = tokenizers.load(GOLDEN / "wordpiece")
MODEL = BertConfig(positions=64)


def shortened(first: int, second: int, room: int) -> tuple[int, int]:
    """google-research/bert run_classifier.py: the longer text loses its last token, the second where both are equal."""
    while first + second > room:
        first, second = (first - 1, second) if first > second else (first, second - 1)
    return first, second


@pytest.mark.parametrize("left", [False, True])
def test_rows_of_pairs_equal_a_loop(left: bool) -> None:
    framing, random = Framing(WORDPIECE, MODEL, 12, left), np.random.default_rng(0)
    examples = [[list(range(5, 5 + a)), list(range(30, 30 + b))] for a, b in random.integers(0, 15, (60, 2))]
    framed = framing.rows(examples)
    cls, sep = WORDPIECE.vocabulary.cls, WORDPIECE.vocabulary.sep
    for row, (first, second) in enumerate(examples):
        kept = shortened(len(first), len(second), 12 - 3)
        ids = [cls, *first[: kept[0]], sep, *second[: kept[1]], sep]
        types, pad = [0] * (kept[0] + 2) + [1] * (kept[1] + 1), 12 - len(ids)
        place = lambda values, fill, pad=pad: [fill] * pad + values if left else values + [fill] * pad
        assert framed.rows["tokens"][row].tolist() == place(ids, WORDPIECE.vocabulary.pad)
        assert framed.rows["types"][row].tolist() == place(types, 0)
        assert framed.rows["segments"][row].tolist() == place([1] * len(ids), 0)
        assert framed.rows["positions"][row].tolist() == place(list(range(len(ids))), 0)
        assert framed.kept[row].tolist() == list(kept)
        assert framed.starts[row].tolist() == [pad * left + 1, pad * left + kept[0] + 2]
        assert framed.shortened[row] == (list(kept) != [len(first), len(second)])


@pytest.mark.parametrize("truncation, kept", [("first", [2, 6]), ("second", [6, 2]), ("longest", [4, 4])])
def test_which_text_is_shortened(truncation: str, kept: list[int]) -> None:
    framed = Framing(WORDPIECE, MODEL, 11, truncation=truncation).rows([[range(5, 11), range(5, 11)]])
    assert framed.kept[0].tolist() == kept


@pytest.mark.parametrize("truncation", ["refuse", "second"])
def test_a_text_that_may_not_be_shortened_is_named(truncation: str) -> None:
    framing = Framing(WORDPIECE, MODEL, 11, truncation=truncation)
    with pytest.raises(UserError, match="train.tsv:7: 12 tokens of text, and a row of 11 has room for 8; raise train.length"):
        framing.rows([[range(5, 15), range(5, 7)]], ["train.tsv:7"])


def test_a_row_without_room_for_its_texts_is_refused() -> None:
    with pytest.raises(UserError, match="a row of 4 tokens has no room for 2 texts"):
        Framing(WORDPIECE, MODEL, 4).rows([[[5], [6]]])
    with pytest.raises(UserError, match="rows have 65 tokens and the model takes 64; set train.length to 64 or less"):
        Framing(WORDPIECE, MODEL, 65)


def test_types_stay_within_the_models_own() -> None:
    """RoBERTa has one type at most, whatever the tokenizer says."""
    for types in (0, 1):
        model = BertConfig(types=types)
        framed = Framing(WORDPIECE.framed_as(model.row_frame), model, 8).rows([[[5], [6]]])
        assert not framed.rows["types"].any()


@pytest.mark.parametrize(
    "name, single, pair",
    [
        ("wordpiece", "[CLS] A [SEP]", "[CLS] A [SEP] B/1 [SEP]/1"),
        ("bpe", "<s> A </s>", "<s> A </s> </s> B </s>"),
    ],
)
def test_frames_of_one_and_two_texts(name: str, single: str, pair: str) -> None:
    tokenizer = tokenizers.load(GOLDEN / name)
    shown = lambda index, kind: ("AB"[-1 - index] if index < 0 else tokenizer.token(index)) + (f"/{kind}" if kind else "")
    for texts, wanted in ((1, single), (2, pair)):
        assert " ".join(shown(*part) for part in tokenizer.frame(texts, GptConfig.frame.fallback)) == wanted


def test_gpt_has_its_own_pieces_around_texts() -> None:
    """openai/finetune-transformer-lm train.py: three pieces that the published vocabulary does not have."""
    published = tokenizers.load(GOLDEN / "word_bpe")
    with pytest.raises(UserError, match="the vocabulary lacks _start_, _delimiter_, _classify_"):
        published.frame(1, GptConfig.frame.fallback)
    tokenizer = published.extended(GptConfig.frame.fallback)
    start, delimiter, classify = range(published.vocabulary.size, published.vocabulary.size + 3)
    assert tokenizer.frame(1, GptConfig.frame.fallback) == ((start, 0), (-1, 0), (classify, 0))
    assert tokenizer.frame(2, GptConfig.frame.fallback) == ((start, 0), (-1, 0), (delimiter, 0), (-2, 0), (classify, 0))


def test_xlnet_puts_its_specials_at_the_end() -> None:
    tokenizer = tokenizers.load(TESTS / "baseline" / "runs" / "xlnet" / "data" / "tokenizer")
    framed = Framing(tokenizer, XlnetConfig(), 8, left=True).rows([[[10, 11], [12]]])
    vocabulary = tokenizer.vocabulary
    assert framed.rows["tokens"][0].tolist() == [vocabulary.pad, vocabulary.pad, 10, 11, vocabulary.sep, 12, vocabulary.sep, vocabulary.cls]
    assert framed.rows["types"][0].tolist() == [0, 0, 0, 0, 0, 1, 1, 2]
