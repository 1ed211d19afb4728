"""The examples of a task at a URL: the same as those of the files here, whatever reads them."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import conll, squad_files
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from tests import bucket
from tests.tasks.test_squad_files import item, nested, written
from tests.tasks.tiny_task import make_task


@pytest.fixture
def url(bucket_url: str) -> str:
    """Of an empty folder in an object store."""
    return f"{bucket_url}/task"


def test_rows_of_a_table(url: str, tmp_path: Path) -> None:
    """Of several alternatives, the first that is there, as on a disk."""
    (here := tmp_path / "here").mkdir()
    make_task(here, train=8, dev=5)
    shutil.copytree(here, bucket.at(url))
    names = FilesConfig(train="none.tsv|train.tsv", dev="dev.tsv|none.tsv", test="test.tsv|")
    near, far = (dataclasses.replace(names, path=path) for path in (str(here), url))
    assert far.names("train") == [f"{url}/train.tsv"] and far.names("dev") == [f"{url}/dev.tsv"] and far.names("test") == []
    texts = lambda files, split: [(one.texts, one.label) for one in Classify().examples(files, split)]
    for split, count in (("train", 8), ("dev", 5)):
        assert texts(near, split) == texts(far, split) and len(texts(far, split)) == count


def test_columns_of_words(url: str, tmp_path: Path) -> None:
    (tmp_path / "words.conll").write_text("The DT\ncat NN\n\nsat VBD\n")
    (bucket.at(url)).mkdir(parents=True)
    shutil.copy(tmp_path / "words.conll", bucket.at(url))
    assert conll.sentences(f"{url}/words.conll", "", "") == conll.sentences(str(tmp_path / "words.conll"), "", "")
    (bucket.at(url) / "words.conll").write_text("The DT\ncat\n")
    with pytest.raises(UserError, match=rf"^{url}/words.conll:2: "):
        conll.sentences(f"{url}/words.conll", "", "")


def test_questions(url: str, tmp_path: Path) -> None:
    bucket.at(url).mkdir(parents=True)
    near = squad_files.read(written(tmp_path / "a.json", nested(item())))
    written(bucket.at(url) / "a.json", nested(item()))
    far = squad_files.read(f"{url}/a.json")
    assert far == tuple(dataclasses.replace(one, where=f"{url}/a.json: question q1") for one in near)
