"""What a vocab.txt holds that is not a vocabulary: a download that failed, or another file of a tokenizer."""

import json
import re
from pathlib import Path
from typing import Any

from jaxenc.data.readers import compressed
from jaxenc.errors import UserError
from jaxenc.files import POINTER

AGAIN = "copy the file itself again"
ONE_A_LINE = "write its pieces one a line, in the order of their ids"
UNPACK = {"gzip": "gunzip", "bzip2": "bunzip2", "xz": "xz -d", "Zstandard": "zstd -d"}  # {kind of compression: command}
# {first bytes: (what the file is, what to do)}
STARTS = {
    b"PK\x03\x04": ("a zip archive", "unpack it"),
    POINTER: ("a pointer of git-lfs and not the file itself", "run `git lfs pull`, or download the file itself"),
}
MARKS_UTF16 = (b"\xff\xfe", b"\xfe\xff")
MARKUP = re.compile(r"\s*<(!doctype|html|\?xml|head|body)", re.IGNORECASE)
COLUMNS = re.compile(r"\S+[\t ]-?\d+(\.\d+)?(e-?\d+)?", re.IGNORECASE)
MERGE = re.compile(r"[^ \t]+ [^ \t]+")
BPE_MARKS = re.compile("^\u0120|</w>$")


def check(path: Path, content: bytes) -> None:
    """Raises UserError where `content`, the bytes of a vocab.txt, is something else that can be named. A file with the line `[UNK]` is
    a vocabulary, whatever else it holds."""
    if not content.strip(b"\0 \t\r\n"):
        raise UserError("empty, or zeros alone", path, AGAIN)
    if kind := compressed.kind_of(content[:8]):
        raise UserError(f"compressed by {kind}", path, f"unpack it ({UNPACK[kind]} < vocab.txt > new) and name the result vocab.txt")
    for start, (what, fix) in STARTS.items():
        if content.startswith(start):
            raise UserError(what, path, fix)
    if encoding := "UTF-16" if content.startswith(MARKS_UTF16) else _without_mark(content):
        raise UserError("in UTF-16 and not in UTF-8", path, f"rewrite it (iconv -f {encoding} -t UTF-8 < vocab.txt > new)")
    text = content.decode("utf-8", "replace")
    lines = list(filter(None, map(str.strip, text.split("\n"))))
    if "[UNK]" not in lines and (found := _of_markup(text) or _of_json(text) or _of_lines(lines)):
        raise UserError(found[0], path, found[1])


def _without_mark(content: bytes) -> str:
    """The name of UTF-16 without a byte order mark, '' for anything else: every second byte of ASCII text is zero, and no other."""
    even, odd = (content[half:64:2].count(0) for half in (0, 1))
    if min(even, odd) > 0 or max(even, odd) < len(content[:64]) / 3:
        return ""
    return "UTF-16LE" if odd else "UTF-16BE"


def _of_markup(text: str) -> tuple[str, str] | None:
    return ("a web page (HTML or XML) and not a vocabulary", f"{AGAIN}, from the link for raw files") if MARKUP.match(text) else None


def _of_json(text: str) -> tuple[str, str] | None:
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return None
    try:
        data = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return _of_object(data) if isinstance(data, dict) else (f"a JSON list of {len(data)} entries", ONE_A_LINE)


def _of_object(data: dict[str, Any]) -> tuple[str, str]:
    if isinstance(data.get("model"), dict):
        return "a tokenizer.json", "name it tokenizer.json"
    if not data or not all(type(index) is int for index in data.values()):
        return f"JSON with the fields {', '.join(map(repr, list(data)[:3])) or 'none'}, and not a vocabulary", AGAIN
    if any(map(BPE_MARKS.search, data)):
        return "the vocab.json of a BPE", "name it vocab.json and put its merges.txt beside it"
    return f"JSON with {len(data)} pieces and their ids", ONE_A_LINE


def _of_lines(lines: list[str]) -> tuple[str, str] | None:
    if not lines:  # white space of other kinds alone
        return None
    share = lambda pattern: sum(map(bool, map(pattern.fullmatch, lines))) / len(lines)
    if lines[0].startswith("#version") or (share(MERGE) > 0.9 and share(COLUMNS) < 0.5):
        return "a merges.txt, the merges of a BPE", "name it merges.txt and put its vocab.json beside it"
    if share(COLUMNS) > 0.5 and any(line.startswith("\u2581") for line in lines):
        return "the list that SentencePiece writes beside a model", "put the model itself here, as spiece.model"
    if share(COLUMNS) > 0.5:
        return "a list of pieces with a number after each, as fairseq's dict.txt is", "leave the numbers out if the pieces are WordPiece's"
    return None
