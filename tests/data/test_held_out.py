"""Which documents are held out is a rule of their text, and it never changes: a corpus built again has the same split. A small corpus holds
out at least twenty, or one in ten."""

import hashlib
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import held_out as rule
from jaxenc.data.build import build
from jaxenc.data.readers import Document
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load, wordpiece

# Every third document has a second line.
DOCUMENTS = [f"text {number} here" + (f"\nand {number} there" if number % 3 == 0 else "") for number in range(60)]
# Numbers of those that are held out at a share of 0.2, as first published.
PINNED = [0, 4, 14, 18, 19, 20, 24, 25, 26, 30, 43, 46]


def held_out(share: float) -> list[int]:
    """By hand: BLAKE2b of 8 bytes of the lines with line feeds between, read from its last byte to its first, below the share of 2^64."""
    found = []
    for number, text in enumerate(DOCUMENTS):
        value = 0
        for byte in reversed(hashlib.blake2b(text.encode(), digest_size=8).digest()):
            value = 256 * value + byte
        if value < share * 2.0**64:
            found.append(number)
    return found


@pytest.mark.parametrize("share", [0.2, 0.5, 0.0])
def test_the_documents_of_the_rule_are_held_out(share: float, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(DOCUMENTS))
    wordpiece.train(DOCUMENTS * 2, 200).save(tmp_path / "tokenizer")
    build([str(tmp_path / "text.txt")], tmp_path / "tokenizer", tmp_path / "data", share)
    tool, found = load(tmp_path / "tokenizer"), {}
    for split in ("train", "held_out"):
        shards = open_split(tmp_path / "data", split)
        tokens = shards.tokens.take(np.arange(len(shards.tokens)))
        starts = shards.sentences.take(shards.documents.take(np.arange(len(shards.documents))))
        texts = [tool.decode(tokens[a:b].tolist()) for a, b in itertools.pairwise(starts)]
        found[split] = [int(text.split()[1]) for text in texts]
    assert found["held_out"] == held_out(share)
    assert sorted(found["train"] + found["held_out"]) == list(range(60))


def test_the_rule_is_the_one_of_all_data_so_far() -> None:
    assert held_out(0.2) == PINNED


def documents(count: int) -> list[str]:
    return [f"paper {number} of the corpus" for number in range(count)]


def ranked(texts: list[str]) -> list[str]:
    return sorted(texts, key=lambda text: int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


# 1 % of 400 documents is 3, of 100 it is 1; from 200 documents on it is 20, below that one in ten.
@pytest.mark.parametrize(
    "count, share, wanted", [(400, 0.01, 20), (200, 0.01, 20), (100, 0.01, 10), (19, 0.01, 1), (9, 0.01, 0), (400, 0.0, 0)]
)
def test_a_small_corpus_holds_out_the_smallest_hashes(count: int, share: float, wanted: int, tmp_path: Path) -> None:
    texts = documents(count)
    (tmp_path / "text.txt").write_text("\n\n".join(texts))
    wordpiece.train(texts, 100).save(tmp_path / "tokenizer")
    result = build([str(tmp_path / "text.txt")], tmp_path / "tokenizer", tmp_path / "data", share)
    assert result.splits["held_out"].documents == wanted
    limit = rule.limit(share, [rule.hash_of(text.encode()) for text in texts])
    assert [text for text in ranked(texts) if rule.hash_of(text.encode()) < limit] == ranked(texts)[:wanted]


def test_a_large_corpus_holds_out_the_share_alone() -> None:
    """Twenty documents below the share are enough: no more is read ahead than to the twentieth, and the limit is the one of all data."""
    texts, drawn = [Document("", (text,)) for text in documents(40_000)], []

    def read() -> Iterator[Document]:
        for document in texts:
            drawn.append(document)
            yield document

    limit, found = rule.scanned(read, 0.01)
    assert limit == math.ceil(0.01 * 2**64) and 500 < len(drawn) < 8000
    assert list(found) == texts
    below = [rule.hash_of(rule.text_of(document.lines)) < limit for document in texts]
    assert abs(sum(below) - 400) < 80


def test_a_long_beginning_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "KEPT", 1000)
    texts, begun = [Document("", (text,)) for text in documents(300)], []

    def read() -> Iterator[Document]:
        begun.append(True)
        return iter(texts)

    limit, found = rule.scanned(read, 0.01)
    assert list(found) == texts and len(begun) == 2
    assert limit == rule.limit(0.01, [rule.hash_of(rule.text_of(document.lines)) for document in texts])


def test_no_more_than_is_allowed_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of more documents than that is large, however few are below the share."""
    monkeypatch.setattr(rule, "SCANNED", 50)
    limit, _ = rule.scanned(lambda: (Document("", (text,)) for text in documents(300)), 0.0001)
    assert limit == math.ceil(0.0001 * 2**64)


@pytest.mark.parametrize("equal, wanted", [(100, 0), (95, 5), (20, 10)])
def test_equal_documents_stay_together_within_a_tenth(equal: int, wanted: int) -> None:
    """Of 100 documents the smallest hash is that of `equal` ones, or they come after ten others."""
    texts = documents(100 - equal)
    alone = sorted(rule.hash_of(text.encode()) for text in texts)
    same = alone[wanted - 1] + 1 if wanted else 0
    hashes = [*alone, *[same] * equal]
    limit = rule.limit(0.01, hashes)
    assert sum(value < limit for value in hashes) == max(wanted, sum(value < math.ceil(0.01 * 2**64) for value in hashes))
