"""The scripts of docs/extending.md for a family, a head and an objective, as they stand there; that for a task is run by tests/tasks."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxenc
from jaxenc import rng
from jaxenc.objectives import OBJECTIVES
from jaxenc.training.run import Run
from tests import tiny
from tests.docs.blocks import ROOT
from tests.training.conftest import make_data
from tests.training.test_loop import recipe

PAGE = ROOT / "docs" / "extending.md"


def script(name: str) -> str:
    """The script of the page whose first line is its name."""
    (found,) = re.findall(rf"```python\n(# {name}\n.*?)```", PAGE.read_text(), re.DOTALL)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the scripts run: `data` in it is a data folder."""
    root = tmp_path_factory.mktemp("own")
    (root / "data").symlink_to(make_data(root / "made", 1))
    with pytest.MonkeyPatch.context() as patch, tiny.on_one_device():
        patch.chdir(root)
        yield root


def run(name: str) -> dict:
    """Writes a script of the page to the working directory and runs it as its own program."""
    Path(name).write_text(script(name))
    return runpy.run_path(name, run_name="__main__")


def test_the_family(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """It trains and is loaded; no parameter is a bias of a layer, and the embeddings have no norm."""
    made = run("prenorm.py")
    assert capsys.readouterr().out.splitlines()[-1].startswith("<jaxenc Model: prenorm, 2 layers of 128,")
    paths = {path for path, _ in jaxenc.tree.leaves(jaxenc.load("runs/prenorm", models=made["models"]).params)}
    assert not [path for path in paths if path.startswith("encoder/layer") and path.endswith("/bias") and "norm" not in path]
    assert not [path for path in paths if path.startswith("embeddings/norm")]


def test_the_head(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """It trains, is evaluated and predicts a class for every held-out row."""
    made = run("deep_head.py")
    found = jaxenc.evaluate("runs/deep", heads=made["heads"], predictions=True)
    assert capsys.readouterr().out.splitlines()[-1] == str(found.predictions["deep"].shape) == f"({len(found.index)},)"
    assert set(np.unique(found.predictions["deep"])) <= {0, 1} and 0 <= found.numbers["deep_accuracy"] <= 1


def test_the_objective(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it and the site of its head are listed, it trains. Its rows are those of a loop over the same draws."""
    monkeypatch.setitem(rng.SITES, "swapped", 64)
    made = run("swapped.py")
    monkeypatch.setitem(OBJECTIVES, "swapped", made["SwappedConfig"])
    own: Run = recipe(Path("data"), objective=made["SwappedConfig"]())
    own = jaxenc.override(own, {"train.steps": 4, "checkpoint.every": 4, "eval.every": 4, "log.examples": False})
    jaxenc.pretrain(own, "runs/swapped")
    assert np.isfinite(jaxenc.evaluate("runs/swapped").numbers["swapped_loss"])

    objective = made["Swapped"](None, None, rate=0.4)
    row = {"tokens": jnp.arange(10, 34), "segments": jnp.array([1] * 20 + [0] * 4)}
    for seed in range(20):
        key = jax.random.key(seed)
        drawn = np.array(jax.random.uniform(key, (24,)) < 0.4) & (np.arange(24) < 19)
        tokens, moved = list(range(10, 34)), [0] * 24
        for place in range(19):
            if drawn[place] and not (place and drawn[place - 1]):
                tokens[place : place + 2] = tokens[place : place + 2][::-1]
                moved[place : place + 2] = [1, 1]
        example = objective.corrupt(key, row, jnp.int32(0))
        assert example["tokens"].tolist() == tokens and example["moved"].tolist() == moved
