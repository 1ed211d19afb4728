"""docs/storage.md says where a URL works. Elsewhere it is refused in one line that says what to do, and no folder `gs:` is made."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.storage import READ_HERE, WRITE_HERE
from tests.tasks.tiny_task import make_model

# The arguments of each command; the last option takes no URL.
WRITES = {
    "demo": ["--workdir"],
    "tokenizer": ["--input", "{text}", "--out"],
    "data": ["--input", "{text}", "--tokenizer", "{tokenizer}", "--out"],
    "convert": ["--from", "hf:{text}", "--to"],
    "export": ["--model", "{model}", "--out"],
    "resize-vocab": ["--model", "{model}", "--tokens", "zz", "--out"],
    "embed": ["--model", "{model}", "--input", "{text}", "--out"],
    "predict": ["--model", "{model}", "--input", "{text}", "--out"],
    "evaluate": ["--workdir", "{model}", "--predictions"],
    "compile": ["--config", "bert/tiny", "--topology", "h100:8", "--out"],
    "report": ["--workdir", "{model}", "--out"],
}
ENDINGS = {"embed": ".npz", "evaluate": ".npz", "compile": ".json", "report": ".html"}
READS = {
    "data": ["--input", "{text}", "--out", "{new}", "--tokenizer", "gs://b/tokenizer"],
    "convert": ["--to", "{new}", "--from", "hf:gs://b/model"],
    "pretrain": ["--workdir", "{new}", "--config", "gs://b/run/config.json"],
    "finetune": ["--workdir", "{new}", "--init-from", "{model}", "--config", "gs://b/task.json"],
    "neighbours": ["--model", "{model}", "--word", "a", "--input", "gs://b/text.txt"],
}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model, its tokenizer, a file of text, and a name that is free."""
    folder = tmp_path_factory.mktemp("there")
    make_model(folder / "model")
    (folder / "text.txt").write_text("a text\n")
    return {"model": folder / "model", "tokenizer": folder / "model" / "tokenizer", "text": folder / "text.txt", "new": folder / "new"}


@pytest.mark.parametrize("command", WRITES)
def test_what_only_writes_to_a_disk(command: str, there: dict[str, Path], fails: Callable[..., str]) -> None:
    given = [item.format(**there) for item in WRITES[command]]
    said = fails(command, *given, f"gs://b/new{ENDINGS.get(command, '')}")
    assert f"{given[-1]} gs:/" in said and said.endswith(f"a URL, and only a local path works here; {WRITE_HERE}\n")
    assert not os.path.exists("gs:")


@pytest.mark.parametrize("command", READS)
def test_what_only_reads_from_a_disk(command: str, there: dict[str, Path], fails: Callable[..., str]) -> None:
    said = fails(command, *(item.format(**there) for item in READS[command]))
    assert "gs:/" in said and said.endswith(f"a URL, and only a local path works here; {READ_HERE}\n")
    assert not there["new"].exists()
