"""The advice about a folder of data, followed: what is damaged is copied or built again."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.data.store import open_split
from tests.advice import edits
from tests.advice.edits import Edit, Rule, in_copies, put, removed, rewrite
from tests.advice.following import follow
from tests.training.conftest import make_data

MANIFEST = "manifest.json"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("advice") / "made", 1)


def tokens(change: Callable[[bytes], bytes]) -> Edit:
    """Changes every file of tokens."""

    def edit(folder: Path) -> None:
        for path in folder.rglob("*.tokens"):
            path.write_bytes(change(path.read_bytes()))

    return edit


def lost(folder: Path) -> None:
    for path in folder.rglob("*.tokens"):
        path.unlink()


FILES: dict[str, Edit] = {
    "version": put(MANIFEST, "version", 99),
    "changed": put(MANIFEST, "splits", {}),
    "no json": rewrite(MANIFEST, lambda content: content[:-9]),
    "none": removed(MANIFEST),
    "cut": tokens(lambda content: content[:-4]),
    "other": tokens(lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    "lost": lost,
    "tokenizer": put("tokenizer/tokenizer_config.json", "do_lower_case", True),
    "no tokenizer": lambda folder: shutil.rmtree(folder / "tokenizer"),
}


@pytest.mark.parametrize("name", FILES)
def test_of_files(name: str, base: Path, tmp_path: Path) -> None:
    def whole(folder: Path) -> None:
        shutil.rmtree(folder)
        shutil.copytree(base, folder)

    rules: dict[str, Rule] = {r"again|folder made by|`jaxenc tokenizer": lambda match, error: [whole]}
    act = in_copies(base, tmp_path, lambda folder: open_split(folder, "train", verify=True))
    assert follow(act, (FILES[name],), functools.partial(edits.advised, more=rules))
