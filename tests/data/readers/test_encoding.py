"""R04: what is not UTF-8 text never trains; byte order marks are heeded."""

import codecs
import random

import pytest

from jaxenc.data.readers import encoding
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines
from tests.data.scripts import SENTENCES

ARABIC = "".join(f"هذا هو السطر رقم {i} من النص.\n" for i in range(40))
CHINESE = "".join(f"这是第{i}行文字，我们要读它。\n" for i in range(40))
RUSSIAN = "Это Строка Текста, которую Мы читаем вместе.\n" * 40
GERMAN = "Die Größe der Bäume überrascht, und das ist schön.\n" * 40
MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize("code", MARKS)
@pytest.mark.parametrize("text", [ARABIC, CHINESE, "a\n\n\U0001f600 b\n"])
def test_r04_a_byte_order_mark_is_heeded(tmp_path, code, text):
    (tmp_path / "a.txt").write_bytes(MARKS[code] + text.encode(code))
    (tmp_path / "b.txt").write_text(text, encoding="utf-8")
    assert lines(tmp_path / "a.txt") == lines(tmp_path / "b.txt")


@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", [ARABIC, CHINESE, RUSSIAN, GERMAN])
def test_r04_without_a_mark_the_file_is_refused_and_its_encoding_named(tmp_path, code, text):
    (tmp_path / "a.txt").write_bytes(text.encode(code))
    with pytest.raises(UserError, match=rf"a\.txt: is not UTF-8 text \(.*--encoding {code}"):
        lines(tmp_path / "a.txt")
    assert lines(tmp_path / "a.txt", encoding=code) == [tuple(text.splitlines())]


@pytest.mark.parametrize(
    "text, code", [(GERMAN, "cp1252"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8_r"), (CHINESE, "gb18030")], ids=lambda value: value[:6]
)
def test_r04_code_pages_are_guessed_and_can_be_named(tmp_path, text, code):
    (tmp_path / "a.txt").write_bytes(text.encode(code))
    with pytest.raises(UserError, match=f"--encoding {code}"):
        lines(tmp_path / "a.txt")
    assert lines(tmp_path / "a.txt", encoding=code) == [tuple(text.splitlines())]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.srt"])
def test_r04_binary_debris_is_refused_in_every_format(tmp_path, name):
    debris = random.Random(0).randbytes(5000)
    (tmp_path / name).write_bytes(b"text\n" + debris)
    with pytest.raises(UserError, match=rf"{name}: is not UTF-8 text .*binary data"):
        lines(tmp_path / name)


def test_r04_debris_after_much_text_is_refused_too(tmp_path):
    """The share is of a block, and so a few kilobytes of debris do not drown in megabytes of text."""
    (tmp_path / "a.txt").write_bytes(b"a line of text\n" * 200_000 + random.Random(0).randbytes(9000))
    with pytest.raises(UserError, match=r"a\.txt: is not UTF-8 text"):
        lines(tmp_path / "a.txt")


def test_r04_a_few_bad_bytes_are_counted_and_a_share_is_refused(tmp_path):
    """B26, and the bound: SHARE of a block, and FEW in any."""
    good = b"some good text\n" * 1000
    bad = int(encoding.SHARE * len(good))
    (tmp_path / "a.txt").write_bytes(b"\xff " * (bad - 2) + good)
    _, counts = found(tmp_path / "a.txt")
    assert counts.invalid == bad - 2 > encoding.FEW
    (tmp_path / "a.txt").write_bytes(b"\xff " * (bad + 2) + good)
    with pytest.raises(UserError):
        lines(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b"ab\0c\xff\n")
    documents, counts = found(tmp_path / "a.txt")
    assert (documents[0].lines, counts.nul, counts.invalid) == (("abc\ufffd",), 1, 1)


def test_r04_text_of_forty_scripts_is_text(tmp_path):
    for script, sentences in SENTENCES.items():
        (tmp_path / "a.txt").write_text("\n".join(sentences), encoding="utf-8")
        assert lines(tmp_path / "a.txt") == [tuple(sentences)], script


def test_an_unknown_encoding_or_a_wrong_one_is_one_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(GERMAN.encode("cp1252"))
    for code, said in (("latin-99", "no such encoding"), ("rot13", "no such encoding"), ("utf-16", "is not utf-16")):
        with pytest.raises(UserError, match=said):
            lines(tmp_path / "a.txt", encoding=code)
