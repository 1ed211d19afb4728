"""A tiny untrained BERT with a vocabulary, and a small task, for tests of fine-tuning."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
from flax.core import meta

from jaxenc import rng
from jaxenc.data import tokenizers
from jaxenc.inference.model import Model
from jaxenc.inference.network import objective_of
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training.run import Run
from tests import tiny

TOKENIZER = Path(__file__).parents[1] / "golden" / "tokenizers" / "wordpiece"
WORDS = {"good": ("b", "c", "d"), "bad": ("x", "y", "z")}


def make_model(out: Path) -> None:
    """Writes a run directory with an untrained BERT of 1 layer and the golden WordPiece vocabulary."""
    tokenizer = tokenizers.load(TOKENIZER)
    run = Run(model=dataclasses.replace(tiny.MODEL, layers=1, init_scale=0.1)).with_vocabulary(tokenizer.vocabulary)
    params = meta.unbox(jax.jit(objective_of(run, tokenizer).init)(rng.init_key(0)))
    Model(run, params, tokenizer).save(out)


def make_task(folder: Path, train: int = 64, dev: int = 24, **settings: object) -> FineTune:
    """Writes train.tsv and dev.tsv, sentences whose words give their label, and returns a run of few steps on them."""
    random = np.random.default_rng(0)
    for name, rows in (("train", train), ("dev", dev)):
        labels = [str(label) for label in random.choice(["good", "bad"], rows)]
        texts = [f"it is {' '.join(random.choice(WORDS[label], random.integers(1, 9)))}" for label in labels]
        lines = [f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)]
        (folder / f"{name}.tsv").write_text("text\tlabel\n" + "".join(lines))
    numbers = {"batch": 16, "length": 16, "lengths": (16,), "epochs": 2.0, "warmup": 0.0, **settings}
    data = FilesConfig(str(folder), "train.tsv", "dev.tsv")
    return FineTune(Classify(), data=data, train=TuneConfig(**numbers), optim=OptimConfig(lr=3e-3, warmup=0))
