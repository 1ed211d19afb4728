"""A tiny BERT, its vocabulary and a task of made-up words that it learns in a second: for tests of fine-tuned models."""

import dataclasses
from pathlib import Path

import numpy as np

from jaxenc.data.tokenizers import wordpiece
from jaxenc.families.bert.model import BertConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import EvalConfig, LogConfig
from tests import tiny

# The class of a text is that of its first word.
FIRST = {"red": "no", "blue": "no", "one": "maybe", "two": "maybe", "cat": "yes", "dog": "yes"}
REST = ("walks", "over", "the", "old", "bridge", "and", "sings")
CLASSES = ("maybe", "no", "yes")
DEV, LENGTH, STEPS = 103, 20, 60
MODEL = BertConfig(width=32, layers=1, heads=2, feed_forward=64, positions=32, dropout=0.0, attention_dropout=0.0)


def examples(count: int, seed: int, most: int = 12) -> list[tuple[str, str]]:
    """(text, class) of each. One label in five is wrong, so that no score is 1, and most of the wrong ones are among the last rows."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        first = random.choice(list(FIRST))
        text = " ".join([first, *random.choice(REST, random.integers(0, most))])
        wrong = random.random() < (0.9 if number >= count - 7 else 0.15)
        found.append((text, str(random.choice(CLASSES)) if wrong else FIRST[first]))
    return found


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    """A .tsv file with the columns sentence and label."""
    path.write_text("sentence\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return path


def settings(folder: Path) -> FineTune:
    """Six epochs on train.tsv of a folder, and its dev.tsv of DEV examples in batches of 32."""
    return FineTune(
        task=Classify(text=("sentence",)),
        data=FilesConfig(path=str(folder), train="train.tsv", dev="dev.tsv"),
        train=TuneConfig(epochs=6, batch=16, length=LENGTH),
        optim=OptimConfig(lr=3e-3, warmup=0),
        eval=EvalConfig(every=0, batch=32),
        log=LogConfig(tensorboard=False),
    )


def make(folder: Path) -> Path:
    """`pretrained`, a random BERT; train.tsv and dev.tsv; and `runs`, the work directory of two seeds."""
    tool = wordpiece.train([" ".join((*FIRST, *REST))] * 3, 90)
    run = Run(objective=MlmConfig(), model=MODEL).with_vocabulary(tool.vocabulary)
    Model(run, tiny.drawn(run), tool).save(folder / "pretrained")
    write(folder / "train.tsv", examples(160, 1))
    write(folder / "dev.tsv", examples(DEV, 2))
    with tiny.on_one_device():
        finetune(settings(folder), str(folder / "pretrained"), folder / "runs", seeds=2)
    return folder


def again(tune: FineTune, **train: object) -> FineTune:
    """The settings for a run of one step that changes nothing that can be seen, with other fields of `train`."""
    return dataclasses.replace(
        tune, train=dataclasses.replace(tune.train, steps=1, dropout=False, **train), optim=OptimConfig(lr=1e-9, warmup=0)
    )
