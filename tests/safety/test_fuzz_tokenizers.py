"""Damaged vocabularies of every kind: one line, in bounded time and memory, and what opens also reads a text."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import bpe, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from tests.safety.damage import Edits, altered, bounded, byte_edits, damaged, dumped, fuzzed, json_edits

KINDS = {"wordpiece": wordpiece, "bpe": bpe, "word_bpe": word_bpe, "sentencepiece": unigram, "words": word_list}
TEXTS = ["the cat and the dog sat on the mat", "a dog and a cat ran to the mat", "the end of the day"] * 5
SIZES = {"wordpiece": 60, "bpe": 270, "word_bpe": 60, "sentencepiece": 40, "words": 10}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """{kind: {file: content}} of a small vocabulary of each kind."""
    root = tmp_path_factory.mktemp("tokenizers")
    for kind, module in KINDS.items():
        module.train(TEXTS, SIZES[kind]).save(root / kind)
    return {kind: {path.name: path.read_bytes() for path in (root / kind).iterdir()} for kind in KINDS}


def opened(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with bounded():
        tokenizer = tokenizers.load(folder)
        ids = tokenizer.encode_prompt("the cat, é")
        assert all(0 <= index < tokenizer.vocabulary.ids for index in ids)
        tokenizer.decode(ids)


@fuzzed(450)
@given(kind=st.sampled_from(sorted(KINDS)), edits=json_edits())
def test_tokenizer_json(tmp_path_factory: pytest.TempPathFactory, sound: dict, kind: str, edits: Edits) -> None:
    files = sound[kind]
    changed = {name: dumped(altered(json.loads(files[name]), edits)) for name in ("tokenizer.json",)}
    opened(tmp_path_factory.getbasetemp() / "vocabulary", {**files, **changed})


@fuzzed(400)
@given(kind=st.sampled_from(sorted(KINDS)), name=st.integers(0, 9), edits=byte_edits(), alone=st.booleans())
def test_files_byte_by_byte(tmp_path_factory: pytest.TempPathFactory, sound: dict, kind: str, name: int, edits: Edits, alone: bool) -> None:
    """Any file of a folder is damaged; alone: tokenizer.json is not there, so that the authors' own files are read."""
    files = {other: content for other, content in sound[kind].items() if not (alone and other == "tokenizer.json" and len(sound[kind]) > 2)}
    hit = sorted(files)[name % len(files)]
    opened(tmp_path_factory.getbasetemp() / "vocabulary", {**files, hit: damaged(files[hit], edits)})


@fuzzed(400)
@given(edits=byte_edits())
def test_spiece_models(tmp_path_factory: pytest.TempPathFactory, sound: dict, edits: Edits) -> None:
    content = damaged(sound["sentencepiece"]["spiece.model"], edits)
    opened(tmp_path_factory.getbasetemp() / "vocabulary", {"spiece.model": content})


PIECES = st.sampled_from([*wordpiece.SPECIALS, *word_list.SPECIALS, "a", "##a", "the", "", " b", "\ufeff", "x\0", "\u2028", "\r"])


@fuzzed(500)
@given(lines=st.lists(PIECES, max_size=12))
def test_lists_of_pieces(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    opened(tmp_path_factory.getbasetemp() / "vocabulary", {"vocab.txt": "\n".join(lines).encode()})
