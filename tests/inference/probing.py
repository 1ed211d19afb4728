"""Tiny models and tagged sentences for tests of frozen encoders."""

from pathlib import Path

from jaxenc.data.tokenizers import word_list, wordpiece
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run
from tests import tiny

WORDS = ("dog", "cat", "fox", "runs", "sees", "sleeps", "the", "a", "quick", "naïve")
TAGS = dict(zip(WORDS, ["NOUN"] * 3 + ["VERB"] * 3 + ["DET"] * 2 + ["ADJ"] * 2, strict=True))
ELMO = ElmoConfig(vocab_size=8, width=4, cells=6, character_width=4, filter_widths=(1, 2), filters=(4, 4), highways=1, dropout=0.0)
BERT = BertConfig(vocab_size=60, width=8, layers=2, heads=2, feed_forward=16, positions=32)


def model(kind: str) -> Model:
    """A random `bert` with a head for masked tokens, or a random `elmo` whose vocabulary lacks some of WORDS, each with its tokenizer."""
    text, size = [" ".join(WORDS)] * 3, {"bert": 60, "elmo": 8}[kind]
    tokenizer = word_list.train(text, size) if kind == "elmo" else wordpiece.train(text, size)
    config, objective = _parts(kind)
    run = Run(objective=objective, model=config).with_vocabulary(tokenizer.vocabulary)
    return Model(run, tiny.drawn(run), tokenizer)


def saved(kind: str, folder: Path) -> Path:
    """`folder` with that model."""
    model(kind).save(folder)
    return folder


def sentences(count: int) -> list[list[str]]:
    """Of two to seven words, all different in order."""
    return [[WORDS[(i * 7 + j * (1 + i % 3)) % len(WORDS)] for j in range(2 + i % 6)] for i in range(count)]


def tagged(count: int, file: Path) -> Path:
    """`file` with as many sentences, a word and its tag a line."""
    file.write_text("\n\n".join("\n".join(f"{word}\t{TAGS[word]}" for word in one) for one in sentences(count)) + "\n")
    return file


def _parts(kind: str) -> tuple[ModelConfig, ObjectiveConfig]:
    return (ELMO, FeaturesConfig()) if kind == "elmo" else (BERT, MlmConfig())
