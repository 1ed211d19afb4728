"""`jaxenc.train_tokenizer` and `jaxenc.build_data`: what the commands do, in Python."""

from pathlib import Path

import pytest

import jaxenc
from jaxenc.cli.main import main
from jaxenc.data.tokenizers.from_text import TYPES
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import UserError

SIZES = {"wordpiece": 80, "bpe": 280, "word_bpe": 80, "unigram": 60, "characters": 20}


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"Ångström number {i} is here. It is not there." for i in range(60)))
    return str(path)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folders_are_those_of_the_commands(text: str, tmp_path: Path) -> None:
    """Byte for byte, the tokenizer's and the data's."""
    one, two = tmp_path / "command", tmp_path / "python"
    assert main(["tokenizer", "--input", text, "--vocab-size", "80", "--lowercase", "--out", str(one / "tokenizer")]) == 0
    assert main(["data", "--input", text, "--tokenizer", str(one / "tokenizer"), "--held-out", "0.1", "--out", str(one / "data")]) == 0
    rule = Normalization(lowercase=True)
    tokenizer = jaxenc.train_tokenizer([text], two / "tokenizer", vocab_size=80, rule=rule)
    manifest = jaxenc.build_data([text], two / "tokenizer", two / "data", held_out=0.1)
    assert files(one / "tokenizer") == files(two / "tokenizer") and tokenizer.vocabulary.size == manifest.tokenizer.size == 74
    data = {name: content for name, content in files(one / "data").items() if not name.startswith("report")}
    assert data == {name: files(two / "data")[name] for name in data}


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_trained_and_returned(kind: str, text: str, tmp_path: Path) -> None:
    tokenizer = jaxenc.train_tokenizer([text], tmp_path / "out", vocab_size=SIZES[kind], type=kind)
    (ids,) = tokenizer.encode(["It is not there."])
    assert tokenizer.decode(ids).replace(" ", "") == "Itisnotthere."


@pytest.mark.parametrize(
    "given, said",
    [
        ({"type": "letters"}, "no such type; use wordpiece, bpe, word_bpe, unigram, characters"),
        ({"pretokenized": True}, "use --type characters"),
        ({"inputs": "a.txt"}, "give [name] for a single one"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(given: dict, said: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        jaxenc.train_tokenizer(**{"inputs": [text], "out": tmp_path / "out", **given})
    assert said in str(error.value) and not (tmp_path / "out").exists()
