"""Long texts cut for trainers whose time or limits are those of one text."""

from collections.abc import Iterator


def cut(text: str, longest: int) -> Iterator[str]:
    """`text` in parts of at most `longest` characters, none of them blank: cut before a blank, or inside a word that is longer itself."""
    start = 0
    while len(text) - start > longest:
        blank = text.rfind(" ", start + 1, start + longest)
        end = blank if blank > 0 else start + longest
        yield text[start:end]
        start = end
    if text[start:].strip():
        yield text[start:]
