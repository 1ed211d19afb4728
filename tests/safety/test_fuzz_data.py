"""Damaged data folders and texts: one line, in bounded time and memory."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from jaxenc.config import fingerprint
from jaxenc.data import build, characters, manifest, store
from jaxenc.data.readers import json_lines
from jaxenc.data.sources import grid
from jaxenc.data.tokenizers import word_list
from jaxenc.errors import UserError
from tests.data.readers.reading import lines
from tests.safety import damage
from tests.safety.damage import Edits, altered, bounded, byte_edits, damaged, dumped, fuzzed, json_edits


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of words: it has characters, and its tokenizer is told by the checksums alone."""
    root = tmp_path_factory.mktemp("data")
    texts = [f"word{i % 7} and word{i % 3} .\n" for i in range(40)]
    (root / "text.txt").write_text("\n".join(texts))
    word_list.train(texts, 8).save(root / "tokenizer")
    build.build([str(root / "text.txt")], root / "tokenizer", root / "store", held_out=0.2)
    (root / "sound.json").write_bytes((root / "store" / manifest.NAME).read_bytes())
    return root


def signed(facts: object) -> object:
    """`facts` with the fingerprint that a forger would write: the other checks have to hold without it."""
    try:
        names = {name: file["sha256"] for name, file in facts["files"].items()}
        return {**facts, "fingerprint": fingerprint([facts["version"], facts["tokenizer"]["fingerprint"], names])}
    except (KeyError, TypeError, AttributeError, ValueError):
        return facts


def opened(data: Path, facts: bytes) -> None:
    (data / "store" / manifest.NAME).write_bytes(facts)
    with bounded():
        for split in manifest.SPLITS:
            shards = store.open_split(data / "store", split)
            assert shards.characters.shape[0] == shards.manifest.tokenizer.ids
            assert all(path.is_relative_to(data / "store") for path in map(Path, (part.base.filename for part in shards.tokens.parts)))
            shards.tokens.window(np.zeros(1, np.int64), 4)
            shards.sentences.take(np.arange(len(shards.sentences)))


@fuzzed(700)
@given(edits=json_edits())
def test_manifests(data: Path, edits: Edits) -> None:
    opened(data, dumped(signed(altered(json.loads((data / "sound.json").read_bytes()), edits))))


@fuzzed(300)
@given(edits=byte_edits())
def test_manifests_byte_by_byte(data: Path, edits: Edits) -> None:
    opened(data, damaged((data / "sound.json").read_bytes(), edits))


def array_bytes(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


@fuzzed(500)
@given(edits=byte_edits())
def test_tables_of_characters(tmp_path_factory: pytest.TempPathFactory, edits: Edits) -> None:
    path = tmp_path_factory.getbasetemp() / characters.NAME
    path.write_bytes(damaged(array_bytes(characters.of_words(["a", "b"])), edits))
    with bounded():
        assert store._characters(path, 2).shape == (2, characters.WIDTH)


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"\x93NUMPY\1\0", array_bytes(np.int64(5)), array_bytes(np.zeros((2, 2), np.int64))])
def test_a_damaged_grid_is_made_again(data: Path, content: bytes) -> None:
    (data / "store" / manifest.NAME).write_bytes((data / "sound.json").read_bytes())
    shards = store.open_split(data / "store", "train")
    path = data / "store" / f"fuzzed-{shards.manifest.fingerprint[:12]}.npy"
    path.write_bytes(content)
    assert grid.kept(shards, "fuzzed", 5, lambda: np.array([0, 5])).tolist() == [0, 5]


@fuzzed(300)
@given(edits=byte_edits())
def test_grids(data: Path, edits: Edits) -> None:
    """Whatever became of its file, a grid is what it was."""
    (data / "store" / manifest.NAME).write_bytes((data / "sound.json").read_bytes())
    shards = store.open_split(data / "store", "train")
    path = data / "store" / f"fuzzed-{shards.manifest.fingerprint[:12]}.npy"
    path.unlink(missing_ok=True)
    wanted = np.arange(40) ** 2
    opened = lambda: grid.kept(shards, "fuzzed", int(wanted[-1]), lambda: wanted)
    assert isinstance(opened(), np.memmap)
    path.write_bytes(damaged(path.read_bytes(), edits))
    with bounded():
        assert np.array_equal(opened(), wanted) and np.array_equal(opened(), wanted)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda facts: facts["files"].update({"../secret": {"size": 3, "sha256": ""}}), "'../secret' is not a file of the folder"),
        (lambda facts: facts["files"].update({"/etc/passwd": {"size": 3, "sha256": ""}}), "'/etc/passwd' is not a file of the folder"),
        (lambda facts: facts["splits"]["train"]["shards"][0].update(name="../train-00000"), "train-00000.tokens has another size"),
        (lambda facts: facts["splits"]["train"]["shards"][0].update(sentences=1 << 30), "train-00000.sentences has another size"),
        (lambda facts: facts["splits"]["train"]["shards"][0].update(sentences=1 << 40), "shard.sentences is 1099511627776"),
        (lambda facts: facts.update(dtype="object"), "the dtype 'object'"),
        (lambda facts: facts["tokenizer"].update(pad=99), "a special id outside"),
        (lambda facts: facts["splits"]["train"].update(tokens="many"), "split.tokens is 'many'"),
    ],
)
def test_what_a_manifest_may_not_say(data: Path, change, words: str) -> None:
    facts = json.loads((data / "sound.json").read_bytes())
    change(facts)
    (data / "store" / manifest.NAME).write_bytes(dumped(signed(facts)))
    with pytest.raises(UserError, match=words):
        store.open_split(data / "store", "train")


def test_a_line_of_json_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file of 100 kB is unpacked to is never held whole."""
    monkeypatch.setattr(json_lines, "LONGEST", 1 << 16)
    monkeypatch.setattr(damage, "MEMORY", 1 << 26)
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(b'{"text": "' + b"a" * (1 << 27), compresslevel=6))
    with bounded(), pytest.raises(UserError, match=r"bomb\.jsonl\.gz:1: not a JSON object on one line, of at most 65,536 bytes"):
        lines(tmp_path / "bomb.jsonl.gz")
