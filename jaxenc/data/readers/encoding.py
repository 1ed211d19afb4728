"""Bytes to text: byte order marks, other encodings, and the refusal of what is not text."""

import codecs
import io
import itertools
import unicodedata
from collections.abc import Iterator

from jaxenc.data.readers.document import Counts
from jaxenc.data.readers.streams import BLOCK, Stream
from jaxenc.errors import UserError

# A block of a file with more than this share of NUL characters and invalid bytes, and more than FEW of them, is not UTF-8 text.
SHARE = 0.002
FEW = 8

# UTF-32 first: its mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODE_PAGES = ("gb18030", "shift_jis", "euc_jp", "euc_kr", "big5", "cp1251", "koi8_r", "cp1256", "cp1253", "cp1255", "cp874")


def utf8(file: io.BufferedReader, name: str, encoding: str, counts: Counts) -> io.BufferedReader:
    """`file` as UTF-8 without its byte order mark. encoding: of the file, "" for what its mark says, or else UTF-8."""
    mark, marked = next(((mark, code) for mark, code in _MARKS if file.peek(4)[:4].startswith(mark)), (b"", "utf-8"))
    # In an 8-bit encoding the bytes of a mark may be letters.
    if mark and (not encoding or codecs.lookup(encoding).name.startswith("utf")):
        file.read(len(mark))
        encoding = marked
    if codecs.lookup(encoding or "utf-8").name == "utf-8":
        return file
    return io.BufferedReader(Stream(_converted(file, name, encoding, counts)), BLOCK)


def _converted(file: io.BufferedReader, name: str, encoding: str, counts: Counts) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while True:
        block = file.read(BLOCK)
        try:
            text = decoder.decode(block, not block)
        except UnicodeError as error:  # UTF-16 or UTF-32 without a byte order
            raise UserError(f"is not {encoding}, as --encoding says ({error})", name, _what(block)) from error
        invalid = text.count("\ufffd")
        if invalid > max(FEW, SHARE * len(text)):
            raise UserError(f"is not {encoding}, as --encoding or its byte order mark says", name, _what(block))
        counts.invalid += invalid
        yield text.encode()
        if not block:
            return


def decoded(raw: bytes, name: str, counts: Counts) -> str:
    """The text of a block of UTF-8, whole lines, without NUL characters and with U+FFFD for invalid sequences; both are counted.

    Raises UserError naming the file and its likely encoding when they exceed SHARE of the block: otherwise a file in another encoding, or
    a binary one, would become garbage that a model is trained on without notice.
    """
    try:
        text, invalid = raw.decode(), 0
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        invalid = text.count("\ufffd") - raw.count("\ufffd".encode())
    nul = text.count("\0") if "\0" in text else 0
    if nul + invalid > max(FEW, SHARE * len(raw)):
        raise UserError(f"is not UTF-8 text ({nul + invalid:,} NUL or invalid bytes in {len(raw):,})", name, _what(raw))
    counts.nul += nul
    counts.invalid += invalid
    return text.replace("\0", "") if nul else text


def _what(raw: bytes) -> str:
    """What bytes that are not UTF-8 most likely are, and what to do."""
    likely = _likely(raw[:BLOCK])
    if not likely:
        return "it looks like binary data: leave it out, or convert it to text"
    return f"it may be {likely}: try --encoding {likely}, or convert it with `iconv -f {likely} -t UTF-8`"


def _likely(raw: bytes) -> str:
    """A guess at the encoding, "" for none: by the positions of NUL bytes, the share of letters outside ASCII, and what decodes."""
    if raw.count(0):
        places = [raw[i::4].count(0) for i in range(4)]
        even, odd = places[0] + places[2], places[1] + places[3]
        wide = (
            "utf-32-le" if places[3] and places[2] and not places[0] else "utf-32-be" if places[0] and places[1] and not places[3] else ""
        )
        for code in filter(None, (wide, "utf-16-le" if odd > even else "utf-16-be")):
            if _reads(raw[: len(raw) // 4 * 4], code) > 0.9:
                return code
        return ""
    high = sum(byte > 127 for byte in raw)
    letters = sum(chr(byte).isalpha() for byte in raw if byte < 128)
    if any(byte < 9 or 13 < byte < 27 for byte in raw[:4096]):
        return ""
    if high < letters:
        return "cp1252"
    return max(_CODE_PAGES, key=lambda code: _reads(raw, code))


def _reads(raw: bytes, code: str) -> float:
    """The share of characters usual in text when `raw` is read as `code`; symbols count half, invalid bytes nothing."""
    text = raw[: 1 << 14].decode(code, "replace")
    points = {"L": 1.0, "M": 1.0, "N": 1.0, "P": 1.0, "Z": 1.0, "S": 0.5}
    kinds = [unicodedata.category(c) for c in text]
    good = sum(0.0 if c == "\ufffd" else 1.0 if c in "\r\n\t" else points.get(kind[0], 0.0) for c, kind in zip(text, kinds, strict=True))
    # A capital rarely follows a small letter in a word, which distinguishes KOI8-R from Windows-1251.
    odd = sum(first == "Ll" and second == "Lu" for first, second in itertools.pairwise(kinds))
    return (good - odd) / max(len(text), 1)
