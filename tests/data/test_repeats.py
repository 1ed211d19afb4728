"""Text that repeats, as the trainer of unigram vocabularies gets it: its steps, counted by a suffix array, and the vocabulary."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from jaxenc.data import docstrings
from jaxenc.data.tokenizers.lines import cut
from jaxenc.data.tokenizers.sentencepiece import repeats, trainer, unigram

FOX = "the quick brown fox jumps over the lazy dog "
END = "zebra of the end"


def words(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    known = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(2000)]
    return draw.choices(known, k=count)


def lines(characters: int, seed: int = 0) -> list[str]:
    """Lines of 15 words that do not repeat."""
    held = words(characters // 6, seed)
    return [" ".join(held[start : start + 15]) for start in range(0, len(held), 15)]


# {name: from a number of characters to a text of that size that repeats}
REPEATING: dict[str, Callable[[int], list[str]]] = {
    "a line of the same words": lambda size: [FOX * (size // len(FOX))],
    "lines of the same words": lambda size: [FOX * 9] * (size // len(FOX) // 9) + [END],
    "lines of one word": lambda size: ["yes"] * (size // 4) + ["no"],
    "a passage given twice": lambda size: [*lines(size // 2), *lines(size // 2), END],
    "one word of the same letters": lambda size: ["ab" * (size // 2)],
    "one word of long periods": lambda size: ["".join(random.Random(1).choices("ACGT", k=997)) * (size // 997)],
}


def steps(texts: Iterable[str]) -> int:
    """Steps of the library's trainer (see repeats.py): the sum of the longest common prefixes of neighbours in the suffix array."""
    text = "".join(f"{text}\0" for text in texts)
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
    rank, reach = codes, 1
    while True:  # by prefixes twice as long each time
        after = np.append(rank[reach:], np.full(min(reach, len(rank)), -1))
        order = np.lexsort((after, rank))
        new = np.append(0, np.cumsum((np.diff(rank[order]) != 0) | (np.diff(after[order]) != 0)))
        rank = np.empty_like(rank)
        rank[order] = new
        if new[-1] == len(rank) - 1:
            break
        reach *= 2
    total = common = 0
    for at, place in enumerate(rank.tolist()):  # Kasai et al., "Linear-time longest-common-prefix computation" (2001)
        other = int(order[place - 1]) if place else -1
        while other >= 0 and text[at + common : at + common + 1] == text[other + common : other + common + 1] != "":
            common += 1
        common = common if other >= 0 else 0
        total, common = total + common, max(common - 1, 0)
    return total


def parts(texts: Iterable[str]) -> list[str]:
    """`texts`, cut where they are too long for the library."""
    return [part for text in texts for part in cut(text, trainer.LONGEST)]


def fed(texts: list[str]) -> list[str]:
    """What the library's trainer reads of `texts`."""
    return parts(repeats.broken(texts))


def test_steps_are_counted_right() -> None:
    """banana: a, an, ana and n, na occur twice; the suffixes a, ana, anana share 1 and 3 characters, na and nana 2."""
    assert steps(["banana"]) == 1 + 3 + 2
    assert steps(["ab", "ab"]) == len("ab\0") + len("b\0") + len("\0")


@pytest.mark.parametrize("name", REPEATING)
def test_the_trainer_takes_steps_in_proportion_to_a_text_that_repeats(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 250 steps for each further character; more than 1,500 without `repeats`. FREE is small here, so that short texts show it."""
    monkeypatch.setattr(repeats, "FREE", 1 << 20)
    small, large = (REPEATING[name](size) for size in (20_000, 40_000))
    assert steps(parts(large)) - steps(parts(small)) > 1500 * 20_000
    assert steps(fed(large)) - steps(fed(small)) < 250 * 20_000


@pytest.mark.parametrize("name", REPEATING)
def test_no_word_is_lost_and_none_is_cut_but_long_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "FREE", 0)
    texts = REPEATING[name](30_000)
    found = fed(texts)
    assert found != parts(texts) and max(map(len, found)) <= trainer.LONGEST
    if name.startswith("one word"):
        assert "".join(found) == texts[0] and len(found[0]) > repeats.WORD
    else:
        assert Counter(" ".join(found).split()) == Counter(" ".join(texts).split())


def of_docstrings(characters: int) -> list[str]:
    """Lines of the docstrings of NumPy, in the blanks that the trainer takes."""
    out, size = list[str](), 0
    for path in sorted(Path(np.__file__).parent.rglob("*.py")):
        for line in (line for text in docstrings._paragraphs_of(path) for line in text.split("\n")):
            if size < characters and (text := " ".join(line.split())):
                out.append(text)
                size += len(text)
        if size >= characters:
            break
    return out


def test_ordinary_lines_come_through_as_they_are() -> None:
    """Docstrings, which hold many lines twice, blank lines, and a line of 340,000 characters."""
    texts = ["", *of_docstrings(100_000), "", " ", *lines(50_000), " ".join(lines(340_000, seed=1))]
    assert sum(map(len, texts)) > 450_000 and list(repeats.broken(iter(texts))) == texts


def test_a_table_that_is_full_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full table would say of every window that it occurred before."""
    for name, value in {"FREE": 0, "EACH": 0, "BITS": 14, "FULL": 1 << 13}.items():
        monkeypatch.setattr(repeats, name, value)
    texts = lines(200_000)
    assert list(repeats.broken(texts)) == texts


@pytest.mark.parametrize("least", [0, repeats.LEAST])
def test_where_sentences_end_changes_no_vocabulary(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, also with ends drawn all over the text (least 0): docstrings, a part of them given twice."""
    texts = of_docstrings(30_000)
    texts = [*texts[:100], *texts]
    for name, value in {"FREE": 0, "EACH": 0, "LEAST": least}.items():
        monkeypatch.setattr(repeats, name, value)
    assert len(fed(texts)) > len(texts)
    drawn = trainer.trained(texts, 500)
    monkeypatch.setattr(repeats, "broken", iter)
    assert drawn == trainer.trained(texts, 500)


def test_the_trainer_gets_a_line_that_repeats_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """340,000 characters: all words, in sentences of four on average."""
    held: list[str] = []

    def train(sentence_iterator: Iterable[str], **_: object) -> None:
        held.extend(sentence_iterator)
        raise RuntimeError("sentences_.empty()")

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", train)
    with pytest.raises(Exception, match="holds no text"):
        unigram.train([FOX * (340_000 // len(FOX))], 100)
    assert " ".join(held).split() == (FOX * (340_000 // len(FOX))).split()
    late = held[len(held) // 2 :]
    assert 3 < sum(len(text.split()) for text in late) / len(late) < 5
