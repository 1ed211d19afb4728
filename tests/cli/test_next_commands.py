"""R27: the commands that are printed after `convert` run as they are printed, for every kind of converted model."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxenc
from jaxenc import tree
from jaxenc.cli.main import main
from jaxenc.convert import onward, runs
from jaxenc.data import tokenizers
from jaxenc.families import MODELS
from jaxenc.families.foreign import Structure
from jaxenc.inference.model import Model
from tests import tiny
from tests.training.conftest import make_data

pytestmark = pytest.mark.usefixtures("one_device")

SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32}
MODELS_OF: Mapping[str, Mapping[str, Any]] = {
    "bert": {**SIZES, "positions": 24},
    "albert": {**SIZES, "positions": 24, "embedding": 8},
    "distilbert": {**SIZES, "positions": 24},
    "gpt": {**SIZES, "positions": 24},
    "xlnet": SIZES,
}
# The heads that a folder of transformers may hold, by kind of model.
HEADS = {
    "bert": ("", "pooler", "mlm", "pooler mlm", "pooler mlm next_sentence", "pooler next_sentence", "pooler classifier", "tags", "spans"),
    "albert": ("", "pooler", "mlm", "pooler mlm sentence_order", "pooler classifier", "tags", "spans"),
    "distilbert": ("", "mlm", "pooler classifier", "tags", "spans"),
    "gpt": ("", "next_token", "last_token classifier", "next_token last_token classifier"),
    "xlnet": ("", "lm", "summary classifier", "tags", "spans"),
}
CASES = [(kind, heads) for kind, several in HEADS.items() for heads in several]
SHORT = {("gpt", "")}  # test_convert has two of bert
SMALL = ("train.batch=8", "train.steps=1", "optim.warmup=0", "log.tensorboard=false", "data.length=24", "data.reuse=8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("texts")
    return {kind: make_data(folder / kind, 1, kind).parent for kind in ("wordpiece", "unigram")}


def converted(kind: str, heads: str, folder: Path, out: Path) -> Model:
    """A random model of this kind with these heads as a conversion saves it, with the tokenizer in `folder`."""
    names = tuple(heads.split())
    structure = Structure(MODELS[kind](**MODELS_OF[kind]), names, ("no", "yes") if {"classifier", "tags"} & {*names} else ())
    tokenizer = tokenizers.load(folder / "tokenizer")
    run = runs.run_for(structure).with_vocabulary(tokenizer.vocabulary)
    model = Model(run, tiny.drawn(run), tokenizer)
    model.save(out)
    return model


@pytest.mark.parametrize("kind, heads", [case if case in SHORT else pytest.param(*case, marks=pytest.mark.full) for case in CASES])
def test_r27_the_printed_commands_run(
    kind: str, heads: str, data: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """With a file for FILES and a few fields that make it small. The encoder is taken over, but for one step; heads that a folder has not
    start fresh."""
    monkeypatch.chdir(tmp_path)
    folder = data["unigram" if kind == "xlnet" else "wordpiece"]
    said = onward.commands(Path("our model"), converted(kind, heads, folder, Path("our model")))
    first, *rest = said.splitlines()
    for line in (first.removeprefix("next: "), *rest):
        argv = [{"FILES": str(folder / "text.txt")}.get(item, item) for item in shlex.split(line)]
        fields = (*SMALL, *(("objective.permutation=8", "objective.predictions=6") if kind == "xlnet" else ()))
        small = [f"--config.{item}" for item in fields] if argv[1] == "pretrain" else []
        assert argv[0] == "jaxenc" and main([*argv[1:], *small]) == 0, capsys.readouterr()
    before, after = (dict(tree.leaves(jaxenc.load(name).params)) for name in ("our model", "RUN"))
    kept = [path for path in after if path.split("/")[0] in ("embeddings", "encoder")]
    assert kept and all(np.abs(after[path] - before[path]).max() < 1e-2 for path in kept)
