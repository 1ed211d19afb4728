"""A tiny untrained BERT with a vocabulary, and small labelled files, for tests of fine-tuning."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flax.core import meta

from jaxenc import rng
from jaxenc.data import tokenizers
from jaxenc.inference import load
from jaxenc.inference.load import Model
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training.run import Run
from tests import tiny

TOKENIZER = Path(__file__).parents[1] / "golden" / "tokenizers" / "wordpiece"
WORDS = {"good": ("b", "c", "d"), "bad": ("x", "y", "z")}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with an untrained BERT of 2 layers and the golden WordPiece vocabulary."""
    tokenizer = tokenizers.load(TOKENIZER)
    run = Run(model=dataclasses.replace(tiny.MODEL, init_scale=0.1)).with_vocabulary(tokenizer.vocabulary)
    out = tmp_path_factory.mktemp("pretrained") / "run"
    params = meta.unbox(load.objective_of(run, tokenizer).init(rng.init_key(0)))
    load.save(out, Model(run, params, tokenizer))
    return out


@pytest.fixture
def labelled(tmp_path: Path) -> Callable[..., FineTune]:
    """A function that writes train.tsv and dev.tsv, sentences whose words give their label, and returns a run of few steps on them."""

    def write(train: int = 64, dev: int = 24, **settings: object) -> FineTune:
        random = np.random.default_rng(0)
        for name, rows in (("train", train), ("dev", dev)):
            with (tmp_path / f"{name}.tsv").open("w") as file:
                file.write("text\tlabel\n")
                for _ in range(rows):
                    label = str(random.choice(["good", "bad"]))
                    words = random.choice(WORDS[label], random.integers(1, 9))
                    file.write(f"it is {' '.join(words)}\t{label}\n")
        numbers = {"batch": 16, "length": 32, "lengths": (16, 32), "epochs": 2.0, "warmup": 0.0, **settings}
        data = FilesConfig(str(tmp_path), "train.tsv", "dev.tsv")
        return FineTune(Classify(), data=data, train=TuneConfig(**numbers), optim=OptimConfig(lr=3e-3, warmup=0))

    return write
