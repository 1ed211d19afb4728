"""A text as a vocabulary reads it, in lines: what its normaliser changes, and the pieces with their ids."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jaxenc.data import lost, tokenizers
from jaxenc.data.tokenizers import marks
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK


def describe(folder: str | Path, text: str) -> Iterator[str]:
    """The lines of `jaxenc tokenizer --inspect`. A text is read as that of a corpus: special pieces in it are letters.

    Each piece has its id, its characters in `text` (from, to; the first is 0) and those characters; a `▁` that is a piece by
    itself has none. Raises UserError when `folder` holds no tokenizer.
    """
    tool = tokenizers.load(folder)
    vocabulary, written = tool.vocabulary, tool.written(text)
    yield f"{folder}: {vocabulary.size:,} pieces, fingerprint {vocabulary.fingerprint[:12]}"
    yield f"read as: {written}" if written != text else "read as it is written"
    removed = lost.removed([text], tool.written)
    yield f"removed: {lost.listed(removed) or 'nothing'}"
    before, after = (Counter(unicodedata.normalize("NFD", one)) for one in (text, written))
    if gone := {one: count for one, count in (before - after).items() if marks.is_mark(one) and one not in removed}:
        yield f"marks dropped: {lost.listed(gone)}"
    ((ids, places),) = tool.encode_offsets([text])
    yield f"{len(ids):,} pieces, {len(text) / len(ids):.1f} characters each" if ids else "0 pieces"
    for index, (start, end) in zip(ids, places, strict=True):
        # The library gives a mark by itself the place of the letter after it.
        end = start if _is_mark(tool.token(index)) and not _is_mark(text[start:end]) else end
        unknown = f"  {vocabulary.unknown_name}" if vocabulary.is_unknown(index) else ""
        yield f"  {index:>7,}  {start:>4}-{end:<4}  {tool.readable(index)}  {text[start:end]!r}{unknown}"
    if found := lost.unknown([text], tool):
        yield f"unknown characters: {lost.listed(found)}"


def _is_mark(text: str) -> bool:
    """Whether it holds nothing but blanks, or the marks that SentencePiece writes for them."""
    return not text.strip().strip(MARK)
