"""Sentences of tagged words from files of columns: CoNLL's many kinds, CoNLL-U, and lists of words without tags."""

import codecs
import dataclasses
import re
from collections.abc import Callable, Iterator

from jaxenc.data import remote
from jaxenc.data.readers import compressed
from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.sources import READABLE
from jaxenc.data.readers.streams import HEAD
from jaxenc.errors import UserError
from jaxenc.files import user_errors

COMMENT = "#"
DOCUMENT_START = "-DOCSTART-"  # begins a document in the files of CoNLL-2003
SENTENCE_ID = re.compile(r"# *sent_id *= *(.+)")
# CoNLL-U (universaldependencies.org/format.html): FORM is column 2, UPOS column 4; `1-2` and `1.1` are ids of lines that hold no word.
COLUMNS, FORM, UPOS = 10, "2", "4"
WORD_ID, OTHER_ID = re.compile(r"[0-9]+"), re.compile(r"[0-9]+[-.][0-9]+")
NOT_GIVEN = "_"  # in CoNLL-U


@dataclasses.dataclass(frozen=True)
class Sentence:
    """name: its `sent_id` in CoNLL-U, '' without one. tags: one a word, or () in a file without tags. lines: the line of each word in its
    file, from 1."""

    name: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    lines: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class _Layout:
    """The columns of one file. word, tag: their places from 0; tag is -1 for a file without tags."""

    split: Callable[[str], list[str]]
    columns: int
    word: int
    tag: int
    conllu: bool


def sentences(file: str, word: str = "", tag: str = "") -> list[Sentence]:
    """The sentences of `file`, in its order: UTF-8, or UTF-16 with a byte order mark, also compressed.

    word, tag: the number of a column: 1 is the first, -1 the last. '' is the first column for words and the last for tags, and in CoNLL-U
    FORM and UPOS. A file with one column has no tags, nor has a CoNLL-U file whose tags are all `_`.

    Columns are separated by tabs where the first line of words has one, otherwise by blanks. A line of white space alone ends a sentence. A
    line that begins with `-DOCSTART-` starts a document and is skipped. A line between two sentences that begins with `#` is a comment
    unless it has all columns, as that of the word `#` has. A file is CoNLL-U if its name ends in `.conllu`, or it has that format's ten
    columns: there every line that begins with `#` is a comment, and multiword tokens (`1-2`) and empty nodes (`1.1`) are skipped.

    Raises UserError, which names the file and the line, for a file that cannot be read, is not UTF-8 or holds no sentence, for a line with
    more or fewer columns than the first one, an empty word or tag, and a sentence of CoNLL-U without words.
    """
    text, name = _read(file)
    lines = text.split("\n")
    layout = _layout(file, lines, name.endswith(".conllu"), word, tag)
    found = list(_sentences(file, lines, layout))
    if not found:
        raise UserError("holds no sentence", file, "name a file with one word a line")
    if layout.conllu and all(tag == NOT_GIVEN for sentence in found for tag in sentence.tags):
        return [dataclasses.replace(sentence, tags=()) for sentence in found]
    return found


def _read(file: str) -> tuple[str, str]:
    """The text of a file with `\n` for every line end, and its name without the suffix of a compressed file."""
    with user_errors(file, READABLE), open(remote.local_copy(file), "rb", buffering=HEAD) as raw:
        unpacked, name = compressed.unpacked(raw, file, Counts())
        content = unpacked.read()
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = f"is not {'UTF-16' if wide else 'UTF-8'} text"
        raise UserError(what, f"{file}:{line}", "convert it, for example with `iconv -f cp1252 -t UTF-8`") from error
    if (at := text.find("\0")) >= 0:
        fix = "convert it, for example with `iconv -f UTF-16LE -t UTF-8`"
        raise UserError("holds a NUL character, as UTF-16 without a byte order mark does", f"{file}:{text.count(chr(10), 0, at) + 1}", fix)
    text = text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n"), name


def _layout(file: str, lines: list[str], conllu: bool, word: str, tag: str) -> _Layout:
    there = [line for line in lines if line.strip() and not line.startswith(DOCUMENT_START)]
    first = next((line for line in there if not line.startswith(COMMENT)), there[0] if there else "")
    split = _by_tabs if conllu or "\t" in first else _by_blanks
    parts = split(first)
    columns = COLUMNS if conllu else len(parts)
    ids = WORD_ID.fullmatch(parts[0]) or OTHER_ID.fullmatch(parts[0]) if parts else None
    conllu = conllu or bool(split is _by_tabs and columns == COLUMNS and ids)
    place_of_word = _place(file, "words", word or (FORM if conllu else "1"), columns)
    if columns <= 1:
        return _Layout(split, columns, place_of_word, -1, conllu)
    place_of_tag = _place(file, "tags", tag or (UPOS if conllu else "-1"), columns)
    if place_of_tag == place_of_word:
        raise UserError(f"task.words and task.tags name one column, {place_of_word + 1}", file, "name two columns")
    return _Layout(split, columns, place_of_word, place_of_tag, conllu)


def _place(file: str, setting: str, value: str, columns: int) -> int:
    """The place from 0 of the column that `value` names."""
    fix = "use the number of a column: 1 is the first, -1 the last"
    if not re.fullmatch(r"-?[1-9][0-9]*", value):
        raise UserError(f"task.{setting} is {value!r}", file, fix)
    if abs(int(value)) > max(columns, 1):
        raise UserError(f"task.{setting} is {value}, and the file has {_columns(columns)}", file, fix)
    return int(value) - 1 if int(value) > 0 else columns + int(value)


def _by_tabs(line: str) -> list[str]:
    """Words in such files may hold blanks."""
    return [part.strip(" ") for part in line.split("\t")]


def _by_blanks(line: str) -> list[str]:
    """Only the blank of ASCII separates: others, such as U+00A0, are parts of words."""
    return [part for part in line.split(" ") if part]


def _sentences(file: str, lines: list[str], layout: _Layout) -> Iterator[Sentence]:
    name, held, first_skipped = "", [], 0  # held: (word, tag, line) of the open sentence
    for number, line in enumerate([*lines, ""], 1):
        where = f"{file}:{number}"
        if not line.strip() or line.startswith(DOCUMENT_START):
            if first_skipped and not held:
                raise UserError("this sentence has no words", f"{file}:{first_skipped}", "remove its lines")
            if held:
                words, tags, numbers = zip(*held, strict=True)
                yield Sentence(name, words, tags if layout.tag >= 0 else (), numbers)
            name, held, first_skipped = "", [], 0
            continue
        parts = layout.split(line)
        if line.startswith(COMMENT) and (layout.conllu or (not held and len(parts) != layout.columns)):
            found = SENTENCE_ID.fullmatch(line.strip())
            name = found[1] if found else name
            continue
        if len(parts) != layout.columns:
            raise UserError(f"has {_columns(len(parts))} where {layout.columns} are expected", where, "give every word all columns")
        if layout.conllu and not WORD_ID.fullmatch(parts[0]):
            if not OTHER_ID.fullmatch(parts[0]):
                raise UserError(f"{parts[0]!r} is not a CoNLL-U id", where, "number the words of a sentence 1, 2, 3")
            first_skipped = first_skipped or number
            continue
        word, tag = parts[layout.word], parts[layout.tag]
        if not word or not tag:
            raise UserError(f"its {'tag' if word else 'word'} is empty", where, "give every word all columns")
        held.append((word, tag, number))


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"
