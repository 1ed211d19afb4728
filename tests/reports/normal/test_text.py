"""The facts of a text, beside a count with dictionaries."""

import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import baselines
from jaxenc.data.sources import DataConfig
from jaxenc.data.store import open_split
from jaxenc.reports.normal import text
from jaxenc.reports.normal.repeats import SENTENCES
from tests.training.conftest import make_data


def sentences(folder: Path, split: str) -> list[tuple[int, ...]]:
    shards = open_split(folder, split)
    borders = shards.sentences.take(np.arange(len(shards.sentences)))
    tokens = shards.tokens.take(np.arange(len(shards.tokens)))
    pairs = itertools.pairwise(borders.tolist())
    return [tuple(tokens[start:end].tolist()) for start, end in pairs if end - start >= text.SHORTEST]


@pytest.mark.parametrize("copies", [1, 3])
def test_repeated_sentences_are_counted_as_by_hand(copies: int, tmp_path: Path) -> None:
    made = make_data(tmp_path / "data", 3)
    folder = rebuilt(made.parent, copies)
    train, held_out = sentences(folder, "train"), sentences(folder, "held_out")
    seen: set[tuple[int, ...]] = set()
    again = 0
    for sentence in train:
        again += len(sentence) * (sentence in seen)
        seen.add(sentence)
    found = text.read(DataConfig(path=str(folder)))
    assert found.tokens == len(open_split(folder, "train").tokens) and not found.missing
    assert found.repeated == pytest.approx(again / sum(map(len, train)))
    assert found.known == pytest.approx(sum(len(one) for one in held_out if one in seen) / sum(map(len, held_out)))
    assert found.counts == baselines.count_baselines(str(folder))
    assert (found.repeated > text_is_there_often) == (copies > 1)


text_is_there_often = 0.3


def rebuilt(folder: Path, copies: int) -> Path:
    """The text of a data folder, so many times."""
    from jaxenc.data.build import build

    (folder / "more.txt").write_text("\n\n".join([(folder / "text.txt").read_text()] * copies))
    build([str(folder / "more.txt")], folder / "tokenizer", folder / "more", 0.2)
    return folder / "more"


def test_rows_of_sentences_have_counts_of_both_directions(tmp_path: Path) -> None:
    folder = make_data(tmp_path / "data", 3, "characters")
    assert set(text.read(DataConfig(path=str(folder), rows="sentences")).counts) == {"unigram", "left", "right"}


def test_sentences_that_repeat_in_documents_that_differ_are_no_copies(tmp_path: Path) -> None:
    """A header in every document, and whole documents twice. The advice of the doctor keeps each line once, and then nothing repeats."""
    from jaxenc.data.build import build

    made = make_data(tmp_path / "data", 3)
    paragraphs = (made.parent / "text.txt").read_text().split("\n\n")
    header = "bakide lomusa teroni pabade kilomu sateron"

    def found(name: str, documents: list[str]) -> text.Text:
        (tmp_path / f"{name}.txt").write_text("\n\n".join(documents))
        build([str(tmp_path / f"{name}.txt")], made.parent / "tokenizer", tmp_path / name, 0.2)
        return text.read(DataConfig(path=str(tmp_path / name)))

    headed, twice, once = (
        found("headed", [f"{header}\n{one}" for one in paragraphs]),
        found("twice", paragraphs * 2),
        found("once", paragraphs),
    )
    assert headed.repeated > once.repeated + 0.1 and headed.copied == once.copied == 0
    assert 0.3 < twice.copied <= twice.repeated
    command = SENTENCES.partition("(")[2].removesuffix(")").replace("OLD", "headed.txt").replace("NEW", "clean.txt")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert (tmp_path / "clean.txt").read_text().count(header) == 1
    assert found("clean", (tmp_path / "clean.txt").read_text().split("\n\n")).repeated < once.repeated + 0.02
