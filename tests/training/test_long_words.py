"""Objectives that go by words, on text without blanks between words: one line at the start of the run says so."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import word_lengths
from jaxenc.data.build import build
from jaxenc.data.sources import DataConfig
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.training import prepare
from jaxenc.training.run import Run
from tests.training.test_loop import recipe

SYLLABLES = ("ကျွန်", "တော်", "မြန်", "မာ", "စာ", "လေ့", "လာ", "နေ", "ပါ", "တယ်")


def burmese(random: np.random.Generator) -> str:
    """A sentence of 8 to 19 syllables, without a blank."""
    return "".join(random.choice(SYLLABLES, random.integers(8, 20))) + "။"


@pytest.fixture(scope="module")
def unspaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of 60 documents whose sentences are one word each."""
    folder, random = tmp_path_factory.mktemp("unspaced"), np.random.default_rng(0)
    documents = [[burmese(random) for _ in range(4)] for _ in range(60)]
    (folder / "text.txt").write_text("\n\n".join("\n".join(lines) for lines in documents))
    unigram.train([line for lines in documents for line in lines], 40).save(folder / "tokenizer")
    build([str(folder / "text.txt")], folder / "tokenizer", folder / "data", 0.2)
    return folder / "data"


def said(run: Run, workdir: Path) -> list[str]:
    """The warnings about words at the start of `run`."""
    return [line for line in prepare.warnings(prepare.prepare(run, workdir)) if "goes by words" in line]


@pytest.mark.parametrize("unit", ["words", "ngrams", "spans"])
def test_sentences_that_are_one_word_are_named(unit: str, unspaced: Path, data: Path, tmp_path: Path) -> None:
    """With the mean of the folder, and of a mixture the folder that is meant; what the line advises silences it."""
    split = open_split(unspaced, "train")
    mean = len(split.tokens) / int(split.words.take(np.arange(len(split.tokens))).sum())
    assert mean > 8
    (line,) = said(recipe(unspaced, objective=MlmConfig(unit=unit)), tmp_path)
    assert line == (
        f"warning: objective.unit={unit} goes by words, which are what stands between blanks, and a word of {unspaced} has {mean:.1f} "
        "tokens on average; set --config.objective.unit=tokens, or put blanks between words and build the data again"
    )
    assert said(recipe(unspaced, objective=MlmConfig(unit="tokens")), tmp_path) == []
    assert said(recipe(data, objective=MlmConfig(unit=unit)), tmp_path) == []


def test_the_folder_of_a_mixture_that_has_long_words_is_named(unspaced: Path, tmp_path: Path) -> None:
    folder, random = tmp_path / "spaced", np.random.default_rng(1)
    folder.mkdir()
    lines = ["\n".join(" ".join(random.choice(SYLLABLES, 12)) for _ in range(4)) for _ in range(60)]
    (folder / "text.txt").write_text("\n\n".join(lines))
    build([str(folder / "text.txt")], unspaced / "tokenizer", folder / "data", 0.2)
    assert word_lengths.tokens_a_word(open_split(folder / "data", "train")) < word_lengths.LIMIT
    words = MlmConfig(unit="words")
    assert said(recipe(folder / "data", objective=words), tmp_path) == []
    both = DataConfig(length=24, mixture=(str(folder / "data"), str(unspaced)))
    (line,) = said(dataclasses.replace(recipe(unspaced, objective=words), data=both), tmp_path)
    assert f"a word of {unspaced} has" in line


def test_an_xlnet_is_not_sent_to_tokens(unspaced: Path, tmp_path: Path) -> None:
    """Its n-grams of tokens begin at words too."""
    model = XlnetConfig(width=16, layers=1, heads=2, feed_forward=32)
    for unit in ("words", "tokens"):
        objective = PlmConfig(predictions=4, permutation=12, memory=0, unit=unit)
        streams = DataConfig(str(unspaced), 24, "streams", reuse=12)
        (line,) = said(dataclasses.replace(recipe(unspaced, objective=objective, model=model), data=streams), tmp_path)
        assert line.startswith(f"warning: objective.unit={unit} goes by words")
        assert line.endswith("tokens on average; put blanks between words and build the data again")


def test_a_large_split_is_sampled_evenly(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of a sample of half of the tokens is near that of all, and words that only the end has are seen."""
    shards = open_split(data, "train")
    whole = word_lengths.tokens_a_word(shards)
    flags = shards.words.take(np.arange(len(shards.tokens)))
    assert whole == pytest.approx(len(flags) / flags.sum())
    monkeypatch.setattr(word_lengths, "RUN", 16)
    monkeypatch.setattr(word_lengths, "RUNS", len(flags) // 32)
    asked = []
    window = type(shards.words).window
    monkeypatch.setattr(type(shards.words), "window", lambda self, starts, length: asked.append(starts) or window(self, starts, length))
    assert word_lengths.tokens_a_word(shards) == pytest.approx(whole, rel=0.1)
    (starts,) = asked
    assert starts[0] == 0 and starts[-1] == len(flags) - 16
