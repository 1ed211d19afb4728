"""Files of a few texts, a tokenizer of their words and the framing of a tiny model, for tests of tasks."""

import functools
import json
from pathlib import Path

import pytest

from jaxenc.data.tokenizers import Tokenizer, wordpiece
from jaxenc.errors import UserError
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.task import Task
from tests import tiny


@functools.cache
def tokenizer() -> Tokenizer:
    return wordpiece.train(["the quick brown fox jumps over the lazy dog"] * 3, 60)


def framing(length: int = 24, truncation: str = "longest") -> Framing:
    return Framing(tokenizer(), tiny.MODEL, length, truncation=truncation)


def write(folder: Path, **splits: str) -> FilesConfig:
    """Files with the given content, as the splits of their names (`train`, `dev`, `test`)."""
    for name, content in splits.items():
        (folder / f"{name}.tsv").write_text(content, encoding="utf-8")
    return FilesConfig(str(folder), **{name: f"{name}.tsv" for name in splits})


def write_json(folder: Path, *rows: dict, split: str = "train") -> FilesConfig:
    """A file with a JSON object a line, as one split."""
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return FilesConfig(str(folder), **{split: f"{split}.jsonl"})


def refused(task: Task, files: FilesConfig, split: str = "train") -> str:
    """The message, without the folder, when the examples are read and the task is fitted to them."""
    with pytest.raises(UserError) as caught:
        task.fitted(task.examples(files, split))
    return str(caught.value).replace(f"{files.path}/", "")
