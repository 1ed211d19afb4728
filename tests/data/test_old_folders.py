"""Folders as the code wrote them before new vocabularies kept marks and case: the same ids, facts and files.

Each holds expected.json, of the code that wrote it: the fingerprint, texts, their ids, and their ids as prompts.
In word_bpe are the two files of GPT-1's format, made by the tokenizers library, and the ids as prompts are those of transformers 5.24.
"""

import hashlib
import json
import lzma
from pathlib import Path

import pytest

from jaxenc.data.tokenizers import load

GOLDEN = Path(__file__).parents[1] / "golden" / "tokenizers"
SPIECE = "1ab1ec4b57f6170abedbf3987cac060a9e85a9d6b70ee9ecb1b6a9caee9b193e"  # sha256 of the spiece.model that was beside unigram's


@pytest.fixture(params=sorted(path.name for path in GOLDEN.iterdir()))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for path in (GOLDEN / request.param).iterdir():
        content = path.read_bytes()
        (tmp_path / path.name.removesuffix(".xz")).write_bytes(lzma.decompress(content) if path.suffix == ".xz" else content)
    return tmp_path


def check(tool, folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert tool.vocabulary.fingerprint == expected["fingerprint"]
    assert tool.encode(expected["texts"]) == expected["ids"]
    assert [tool.encode_prompt(text) for text in expected["texts"]] == expected["framed"]


def test_r01_an_old_folder_gives_the_ids_it_gave(folder: Path) -> None:
    check(load(folder), folder)


def test_r01_an_old_folder_is_saved_as_it_was(folder: Path) -> None:
    """And opens without its tokenizer.json too, where the authors' own files are there."""
    load(folder).save(folder / "again")
    there = {path.name for path in (folder / "again").iterdir()}
    for name in there & {path.name for path in folder.iterdir()}:
        before, after = ((place / name).read_text(encoding="utf-8") for place in (folder, folder / "again"))
        assert json.loads(before) == json.loads(after) if name.endswith(".json") else before == after, name
    if "spiece.model" in there:
        assert hashlib.sha256((folder / "again" / "spiece.model").read_bytes()).hexdigest() == SPIECE
    if there - {"tokenizer.json", "tokenizer_config.json"}:
        (folder / "again" / "tokenizer.json").unlink()
        check(load(folder / "again"), folder)
