"""Duplicate documents: the first one stays, and which are left out does not depend on who looks at them."""

import dataclasses
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import duplicates, manifest
from jaxenc.data.build import build
from jaxenc.data.duplicates import Duplicates, Index
from jaxenc.data.groups import Group
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load
from jaxenc.data.workers import Here
from jaxenc.errors import UserError

EXACT, NEAR = Duplicates("exact"), Duplicates("near")


def dropped(texts: list[str], rule: Duplicates, size: int) -> list[int]:
    """Numbers of the dropped texts, looked at in groups of `size`."""
    index, out = Index(rule), []
    for start in range(0, len(texts), size):
        group = Group("", tuple((text,) for text in texts[start : start + size]))
        out += [start + number for number in index.dropped(duplicates.keys(group, rule))]
    return out


def similar(rng: np.random.Generator, words: list[str], changed: int) -> list[str]:
    """`words` with `changed` of them replaced, far from each other."""
    out = list(words)
    for place in np.linspace(10, len(words) - 10, changed).astype(int):
        out[place] = f"other{rng.integers(10**6)}"
    return out


def runs(text: str) -> set[tuple[str, ...]]:
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return set(zip(*(words[i:] for i in range(5)), strict=False))


def test_near_duplicates_are_those_of_the_jaccard_index() -> None:
    """Against all pairs of sets, for texts whose index is 0.9 or more, or 0.65 or less: three standard errors of 0.035 from 0.8."""
    rng, texts = np.random.default_rng(0), []
    for _ in range(40):
        words = [f"w{number}" for number in rng.integers(0, 5000, 400)]
        texts += [" ".join(similar(rng, words, changed)) for changed in (0, 2, 3, 20, 60)]
    texts = [texts[number] for number in rng.permutation(len(texts))]
    stay: list[int] = []
    wanted, sets = [], [runs(text) for text in texts]
    for number, own in enumerate(sets):
        indices = [len(own & sets[other]) / len(own | sets[other]) for other in stay]
        assert all(value >= 0.9 or value <= 0.65 for value in indices)
        (wanted if max(indices, default=0) >= 0.8 else stay).append(number)
    assert 60 < len(wanted) < 110
    assert dropped(texts, NEAR, 7) == dropped(texts, NEAR, 200) == wanted


def test_exact_duplicates_differ_in_case_and_white_space_at_most() -> None:
    texts = ["One  Text here", "another text", "one text\there", "ONE TEXT HERE ", "one text her", "\ufb01ne", "FINE", "another text."]
    assert dropped(texts, EXACT, 3) == [2, 3, 6]


def test_short_texts_are_compared_whole() -> None:
    assert dropped(["one two", "One Two", "one three", "one"], NEAR, 4) == [1]


def test_the_signature_of_a_long_text_needs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks it is the same as at once, and as the definition of MinHash: the smallest of each permutation."""
    group = Group("", ((" ".join(f"w{number % 1700}" for number in range(5000)),),))
    blocks = duplicates.keys(group, NEAR)
    monkeypatch.setattr(duplicates, "BLOCK", 10**6)
    whole = duplicates.keys(group, NEAR)
    assert np.array_equal(blocks, whole) and whole.shape == (1, 128) and whole.dtype == np.uint32


@pytest.mark.parametrize("rule", [EXACT, Duplicates("near", words=2, permutations=32)])
def test_a_build_without_duplicates(rule: Duplicates, corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch) -> None:
    """A corpus that comes twice, the second time in other letters, gives the documents of the corpus, on the same side."""
    monkeypatch.setattr(building, "GROUP_CHARACTERS", 3000)
    text = corpus.read_text()
    (tmp_path / "twice.txt").write_text(text + "\n" + text.replace("Ban", "BAN").replace(" ", "  "))
    made = {}
    for workers in (1, 2) if rule.kind == "near" else (1,):
        if workers == 1:
            monkeypatch.setattr(building, "pool", lambda count: Here())
        made[workers] = build([str(tmp_path / "twice.txt")], tokenizer, tmp_path / str(workers), 0.2, workers, duplicates=rule)
        monkeypatch.undo()
        monkeypatch.setattr(building, "GROUP_CHARACTERS", 3000)
    assert len({result.fingerprint for result in made.values()}) == 1
    once = build([str(corpus)], tokenizer, tmp_path / "once", 0.2)
    for split in ("train", "held_out"):
        a, b = (open_split(tmp_path / name, split) for name in ("1", "once"))
        assert made[1].splits[split].documents == once.splits[split].documents
        assert np.array_equal(a.tokens.take(np.arange(len(a.tokens))), b.tokens.take(np.arange(len(b.tokens))))


def test_a_request_without_them_is_the_one_of_older_folders(corpus: Path, tokenizer: Path, data: Path) -> None:
    """Its fingerprint is pinned by its definition; the choices count only where they are made."""
    facts = manifest.read(data)
    old = [facts.version, [[i.size, i.sha256] for i in facts.inputs], facts.held_out, load(tokenizer).vocabulary.fingerprint]
    assert facts.request == manifest.fingerprint(old)
    rules = [
        Duplicates(),
        EXACT,
        NEAR,
        Duplicates("near", words=4),
        Duplicates("near", permutations=64),
        Duplicates("near", similarity=0.7),
    ]
    asked = [dataclasses.replace(facts, asked={"duplicates": rule.asked} if rule.asked else {}).request for rule in rules]
    assert len(set(asked)) == 6 and asked[0] == facts.request
    assert Duplicates("exact", words=4).asked == EXACT.asked and Duplicates(words=4).asked == {}
    with pytest.raises(UserError, match="another --drop-duplicates"):
        build([str(corpus)], tokenizer, data, 0.2, duplicates=EXACT)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "fuzzy"},
        {"words": 0},
        {"words": 10**9},
        {"permutations": 4},
        {"permutations": 10**11},
        {"similarity": 0.0},
        {"similarity": 1.5},
        {"similarity": float("nan")},
    ],
)
def test_impossible_rules(wrong: dict) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(UserError, match=f"--duplicate-{name} {value}: out of range; use " if name != "kind" else "--drop-duplicates fuzzy"):
        Duplicates(**{"kind": "near", **wrong})
