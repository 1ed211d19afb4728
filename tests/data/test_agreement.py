"""R39: a folder whose files are not one vocabulary is refused."""

import json
import shutil
from pathlib import Path

import pytest

from jaxenc.data.tokenizers import bpe, load, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError

TEXT = ["the quick brown fox jumps over the lazy dog"] * 4
KINDS = {
    "vocab.txt": lambda text: wordpiece.train(text, 90),
    "vocab.json": lambda text: bpe.train(text, 300),
    "vocab.json, words": lambda text: word_bpe.train(text, 90),
    "spiece.model": lambda text: unigram.train(text, 60),
}


@pytest.mark.parametrize("kind", KINDS)
def test_r39_a_file_of_another_vocabulary_is_refused_by_its_first_piece(kind: str, tmp_path: Path) -> None:
    name = kind.split(",")[0]
    ours, theirs = (KINDS[kind](text) for text in (TEXT, ["a second text with other words in it, many of them"] * 4))
    ours.save(tmp_path / "tok")
    theirs.save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / name, tmp_path / "tok" / name)
    first = next(index for index in range(ours.vocabulary.size) if ours.token(index) != theirs.token(index))
    with pytest.raises(UserError) as raised:
        load(tmp_path / "tok")
    both = f"{tmp_path / 'tok' / 'tokenizer.json'} and {tmp_path / 'tok' / name} disagree"
    pieces = f"id {first} is {ours.token(first)!r} in the first and {theirs.token(first)!r} in the second"
    assert str(raised.value) == f"{both}: {pieces}; delete the file that is wrong, or copy both again"
    (tmp_path / "tok" / "tokenizer.json").unlink()
    if name != "vocab.json":  # merges.txt belongs to the first
        assert load(tmp_path / "tok").encode(TEXT) == theirs.encode(TEXT)


def test_r39_a_word_list_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    """bilm-tf's vocab.txt next to our tokenizer.json; a list of the same words is accepted, with blanks around them too."""
    made = word_list.train(TEXT, 9)
    made.save(tmp_path)
    ours = [made.token(index) for index in range(made.vocabulary.ids)]
    (tmp_path / "vocab.txt").write_text("".join(f" {word}\n" for word in ours))
    assert load(tmp_path).vocabulary == made.vocabulary
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in [*ours[:3], "other", *ours[4:]]))
    with pytest.raises(UserError, match=f"disagree: id 3 is {ours[3]!r} in the first and 'other' in the second"):
        load(tmp_path)


DAMAGED = {
    "list": ("vocab.json", b"[]"),
    "cut": ("vocab.json", b"{"),
    "bytes": ("vocab.txt", b"a\n\xff\n"),
    "model": ("spiece.model", b"\xff\xff"),
}


@pytest.mark.parametrize("name, content", DAMAGED.values(), ids=DAMAGED)
def test_r39_a_damaged_file_next_to_a_sound_one_is_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    KINDS[name](TEXT).save(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=name) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)


def test_r39_merges_in_another_order_are_refused(tmp_path: Path) -> None:
    KINDS["vocab.json"](TEXT).save(tmp_path)
    version, first, second, *rest = (tmp_path / "merges.txt").read_text().splitlines()
    (tmp_path / "merges.txt").write_text("\n".join([version, second, first, *rest]) + "\n")
    with pytest.raises(UserError, match=f"disagree: merge 0 is {first!r} in the first and {second!r} in the second"):
        load(tmp_path)


def test_r39_the_advice_works_the_other_way_too(tmp_path: Path) -> None:
    made = KINDS["vocab.txt"](TEXT)
    made.save(tmp_path)
    (tmp_path / "vocab.txt").write_text((tmp_path / "vocab.txt").read_text() + "more\n")
    with pytest.raises(UserError, match=rf"id {made.vocabulary.size} is 'nothing' in the first and 'more' in the second"):
        load(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    assert load(tmp_path).vocabulary == made.vocabulary


def test_pieces_that_were_added_need_not_be_in_the_authors_file(tmp_path: Path) -> None:
    """transformers writes them to tokenizer.json alone."""
    made = KINDS["vocab.txt"](TEXT)
    made.save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    size = made.vocabulary.size
    data["added_tokens"].append({**data["added_tokens"][0], "id": size, "content": "[NEW]"})
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    assert load(tmp_path).token(size) == "[NEW]"
    data["added_tokens"].pop()
    data["model"]["vocab"]["quagga"] = size
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=f"id {size} is 'quagga' in the first and 'nothing' in the second"):
        load(tmp_path)
