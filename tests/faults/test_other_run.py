"""T10: a work directory of another run, vocabulary, data set or optimizer is refused with the field that differs, and left as it is."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jaxenc.data.build import build
from jaxenc.errors import UserError
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from tests.faults import alone
from tests.faults.alone import Nano
from tests.faults.conftest import Table
from tests.training.conftest import make_data


def part(run: Run, which: str, **values: Any) -> Run:
    return dataclasses.replace(run, **{which: dataclasses.replace(getattr(run, which), **values)})


def data_with(run: Run, folder: Path, change: Callable[[list[str]], list[str]]) -> Run:
    """The same text under a vocabulary that is changed line by line."""
    made = Path(run.data.path).parent
    shutil.copytree(made / "tokenizer", folder / "tokenizer")
    vocabulary = folder / "tokenizer" / "vocab.txt"
    pieces = change(vocabulary.read_text().splitlines())
    vocabulary.write_text("\n".join(pieces) + "\n")
    fast = folder / "tokenizer" / "tokenizer.json"
    told = json.loads(fast.read_text())
    told["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
    fast.write_text(json.dumps(told))
    build([str(made / "text.txt")], folder / "tokenizer", folder / "data", held_out=0.2)
    return part(run, "data", path=str(folder / "data"))


# What changes: (the run that comes, the name that the refusal says).
CASES: dict[str, tuple[Callable[[Run, Path], Run], str]] = {
    "a piece more": (lambda run, folder: data_with(run, folder, lambda pieces: [*pieces, "zzzz"]), "tokenizer"),
    "a piece less": (lambda run, folder: data_with(run, folder, lambda pieces: pieces[:-1]), "tokenizer"),
    "another order": (lambda run, folder: data_with(run, folder, lambda pieces: [*pieces[:-2], pieces[-1], pieces[-2]]), "tokenizer"),
    "layers": (lambda run, folder: part(run, "model", layers=2), "model.layers 1, this run's 2"),
    "heads": (lambda run, folder: part(run, "model", heads=4), "model.heads 2, this run's 4"),
    "family": (lambda run, folder: alone.RECIPES["rtd"].run(Path(run.data.path)), "model.kind"),
    "data": (lambda run, folder: part(run, "data", path=str(make_data(folder / "other", 2))), "data.path"),
    "batch": (lambda run, folder: part(run, "train", batch=16), "train.batch 8, this run's 16"),
    "optimizer": (lambda run, folder: part(run, "optim", name="adagrad"), "optim.name"),
}


@pytest.mark.slow
def test_each_is_refused_by_its_name(
    nanos: Callable[[str], Nano], undisturbed_alone: Callable[[str], Path], tmp_path: Path, row: Table
) -> None:
    workdir = shutil.copytree(undisturbed_alone("mlm"), tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in workdir.rglob("*")}
    for number, (name, (change, named)) in enumerate(CASES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(UserError) as refusal:
            pretrain(change(nanos("mlm").run, folder), workdir)
        assert named in str(refusal.value) and "; set them back, or " in str(refusal.value), name
        assert "\n" not in str(refusal.value), name
    assert {path: path.stat().st_mtime_ns for path in workdir.rglob("*")} == before
    row("T10 the directory of another run", len(CASES), "refused by the field that differs; nothing touched")
