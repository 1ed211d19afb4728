"""Files of tagged words, with every oddity that such files have."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.tasks.conll import Sentence, sentences

PLAIN = "The DT B-NP\ncat NN I-NP\n\nsat VBD B-VP\n"
READ = [Sentence("", ("The", "cat"), ("B-NP", "I-NP"), (1, 2)), Sentence("", ("sat",), ("B-VP",), (4,))]
CONLLU = """# newdoc id = d
# sent_id = first
# text = don't go
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tdep\t_\t_
2.1\tplease\tplease\tINTJ\tUH\t_\t_\t_\t1:dep\t_
3\tgo\tgo\tVERB\tVB\t_\t1\tdep\t_\t_

1\t10 000\t#\tNUM\tCD\t_\t0\troot\t_\t_
2\t#\t#\tSYM\t#\t_\t1\tdep\t_\t_
"""


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[Sentence]]:
    def of(content: str | bytes, word: str = "", tag: str = "", name: str = "words.txt") -> list[Sentence]:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return sentences(str(path), word, tag)

    return of


Read = Callable[..., list[Sentence]]


def words(found: list[Sentence]) -> list[list[str]]:
    return [list(one.words) for one in found]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.rstrip("\n"),
        PLAIN.replace(" ", "\t"),
        PLAIN.replace("\n\n", "\n \t\n"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(" ", "   ").replace("\n", "  \n"),
        PLAIN.replace(" ", " \t "),
        "\ufeff" + PLAIN,
        PLAIN.encode("utf-16"),
        gzip.compress(PLAIN.encode(), mtime=0),
        bz2.compress(PLAIN.encode()),
        lzma.compress(PLAIN.encode()),
        PLAIN + "\n\n \n",
    ],
)
def test_one_content_in_many_forms(read: Read, content: str | bytes) -> None:
    assert read(content) == READ


def test_columns_are_counted_from_either_side(read: Read) -> None:
    assert [one.tags for one in read(PLAIN, tag="2")] == [one.tags for one in read(PLAIN, tag="-2")] == [("DT", "NN"), ("VBD",)]
    (one,) = read("B-X a\nO b\n", word="-1", tag="1")
    assert (one.words, one.tags) == (("a", "b"), ("B-X", "O"))


def test_documents_and_comments_are_no_words(read: Read) -> None:
    found = read("-DOCSTART- -X- O O\n\n# id 7\nEU NNP B-NP B-ORG\n-DOCSTART- -X- O O\n# a longer comment, of words\nPeter N B-NP B-PER\n")
    assert [(one.words, one.tags, one.lines) for one in found] == [(("EU",), ("B-ORG",), (4,)), (("Peter",), ("B-PER",), (7,))]


@pytest.mark.parametrize("between", [" ", "\t"])
def test_a_word_may_begin_like_a_comment(read: Read, between: str) -> None:
    content = "# O\n#1 B-x\n#hashtag O\n\n#just a comment\n# O\n".replace(" ", between)
    assert words(read(content)) == [["#", "#1", "#hashtag"], ["#"]]


def test_other_white_space_and_other_scripts_are_parts_of_words(read: Read) -> None:
    odd = ["a\u00a0b", "x\u2028y", "\u3000", "\u0085", "नमस्ते", "สวัสดี", "مرحبا", "👩‍👩‍👧‍👦", "e\u0301", "\u200d"]
    for between in (" ", "\t"):
        assert words(read("".join(f"{word}{between}O\n" for word in odd))) == [odd]


def test_blanks_inside_words_where_tabs_separate(read: Read) -> None:
    assert words(read("New York\tB-loc\n10 000\tO\n")) == [["New York", "10 000"]]


def test_a_file_with_one_column_has_no_tags(read: Read) -> None:
    assert read("a\n#b\n\nc\n", tag="3") == [Sentence("", ("a", "#b"), (), (1, 2)), Sentence("", ("c",), (), (4,))]


@pytest.mark.parametrize("name", ["x.conllu", "x.conllu.gz", "x.txt"])
def test_conllu(read: Read, name: str) -> None:
    content = gzip.compress(CONLLU.encode()) if name.endswith("gz") else CONLLU
    first = Sentence("first", ("do", "n't", "go"), ("AUX", "PART", "VERB"), (5, 6, 8))
    assert read(content, name=name) == [first, Sentence("", ("10 000", "#"), ("NUM", "SYM"), (10, 11))]
    assert read(content, word="3", tag="5", name=name)[0].tags == ("VB", "RB", "VB")


def test_conllu_without_tags(read: Read) -> None:
    found = read("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n2\tb\t_\t_\t_\t_\t_\t_\t_\t_\n")
    assert [(one.words, one.tags) for one in found] == [(("a", "b"), ())]


EMPTY_NODE = "1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
WRONG = {
    "a column too few": ("a O\nb\n", ":2: has 1 column where 2 are expected"),
    "a column too many": ("a\tO\nb\tc\tO\n", ":2: has 3 columns where 2"),
    "a comment in a sentence": ("a O\n# no comment\n", ":2: has 3 columns"),
    "blanks where the others have tabs": ("a\tO\nb O\n", ":2: has 1 column where"),
    "no word": ("a\tO\n\tO\n", ":2: its word is empty"),
    "no tag": ("a\tO\n\nb\t\n", ":3: its tag is empty"),
    "nothing": ("", ": holds no sentence"),
    "white space": (" \n\t\n", ": holds no sentence"),
    "documents alone": ("-DOCSTART- O\n\n", ": holds no sentence"),
    "another encoding": ("a O\nnaïve O\n".encode("cp1252"), ":2: is not UTF-8"),
    "UTF-16 without a byte order mark": ("a O\nb O\n".encode("utf-16-le"), ":1: holds a NUL character, as UTF-16"),
    "no words in CoNLL-U": (CONLLU + "\n# a comment\n" + EMPTY_NODE, ":14: this sentence has no words"),
    "no id in CoNLL-U": (CONLLU.replace("2\t#", "B\t#"), ":11: 'B' is not a CoNLL-U id"),
    "a short line in CoNLL-U": (CONLLU.replace("2\t#\t#\t", "2\t#\t"), ":11: has 9 columns where 10"),
}


@pytest.mark.parametrize("content, message", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_its_line(read: Read, content: str | bytes, message: str) -> None:
    with pytest.raises(UserError) as error:
        read(content)
    assert f"words.txt{message}" in str(error.value) and error.value.fix


@pytest.mark.parametrize("word, tag", [("0", ""), ("", "0"), ("form", ""), ("4", ""), ("", "-4"), ("2", "2"), ("3", ""), ("", "1.0")])
def test_columns_that_are_not_there(read: Read, word: str, tag: str) -> None:
    with pytest.raises(UserError, match=r"words\.txt: task\.(words|tags)"):
        read(PLAIN, word, tag)


@pytest.mark.parametrize("name, message", [("absent", "No such file"), (".", "directory"), ("x.gz", "is not gzip data")])
def test_files_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "x.gz").write_text(PLAIN)
    with pytest.raises(UserError, match=message):
        sentences(str(tmp_path / name))


def test_a_conllu_file_by_its_name_says_what_it_lacks(read: Read) -> None:
    with pytest.raises(UserError, match=":1: has 1 column where 10"):
        read(PLAIN, name="x.conllu")
