"""Where only one of two plausible answers is right: pieces over two words, added words that share a start, equally frequent letters."""

import pytest

from jaxenc.data.tokenizers import alphabet, bpe, coverage, wordpiece
from jaxenc.data.tokenizers.sentencepiece import model_file, model_folder, unigram

WORDS = ["again", "and", "so", "on"]


def test_a_piece_over_two_words_is_of_the_second() -> None:
    """Of its last character, as `encode_split` says; the pieces around it keep their own."""
    tool = bpe.train([" ".join(WORDS)] * 6, 300).extended(["again and"])
    ids, _, words = tool.encode_split(["so", *WORDS])
    at = ids.index(tool.vocabulary.size - 1)
    assert tool.token(ids[at]) == "again and" and words[at] == 2
    assert [word for word in words if word >= 0] == sorted(word for word in words if word >= 0) and {0, 2, 3, 4} <= set(words)


@pytest.mark.parametrize("added", [["kilo", "kilos"], ["kilos", "kilo"]])
def test_of_two_added_words_the_longer_one_is_found(added: list[str], tmp_path) -> None:
    """Also before pieces that cost nothing, as the user's own symbols of a published vocabulary do: the cut kilo + sx must not win."""
    tool = unigram.train(["ki lo s sx x muda lost"] * 20, 40)
    tool.save(tmp_path / "made")
    path = tmp_path / "made" / model_file.NAME
    facts = model_file.parsed(path, path.read_bytes())
    free = dict(facts.pieces) | {"s": 0.0, "sx": 0.0, "x": 0.0}
    (tmp_path / "free").mkdir()
    unk = [piece for piece, _ in facts.pieces].index("<unk>")
    (tmp_path / "free" / model_file.NAME).write_bytes(
        model_file.written(model_file.Facts(tuple(free.items()), facts.hidden, facts.charsmap), unk)
    )
    larger = model_folder.from_model(tmp_path / "free" / model_file.NAME).extended(added)
    read = lambda text: [larger.token(index) for index in larger.encode([text])[0]]
    assert read("kilosx kilo kilos") == ["▁kilos", "x", "▁kilo", "▁kilos"]


def test_equally_frequent_letters_are_kept_by_code_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order they are seen in: with room for three of five letters, the first three, and a more frequent one before them."""
    monkeypatch.setattr(alphabet, "LEAST", 3)
    monkeypatch.setattr(coverage, "SHARE", 0.0)
    for text, kept in (("e d c b a", "abc"), ("c a e b d", "abc"), ("e e d c b a", "abe")):
        tool = wordpiece.train([text] * 3, 30)
        known = [letter for letter in "abcde" if tool.encode([letter])[0] != [tool.vocabulary.unk]]
        assert "".join(known) == kept, text
