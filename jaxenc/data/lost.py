"""Characters of a text that a vocabulary loses: those that its normaliser removes, and those that it has no piece for."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from jaxenc.data.tokenizers import Tokenizer

REPLACEMENT = "\ufffd"
SHOWN = 10  # characters that a line names


def removed(lines: Iterable[str], written: Callable[[str], str]) -> dict[str, int]:
    """How often each control or format character of `lines` occurs (Unicode category C: controls, direction marks, soft hyphens, byte order
    marks) or U+FFFD, of those that the normaliser `written` removes."""
    # `isprintable` is false for category C and for white space other than the blank: a fast way to find the few lines to count in.
    counts = Counter[str]()
    for line in lines:
        if not line.isprintable() or REPLACEMENT in line:
            counts.update(line)
    other = [one for one in counts if unicodedata.category(one)[0] == "C" or one == REPLACEMENT]
    return {one: counts[one] for one in sorted(other) if written(f"a{one}a") == written("aa")}


def unknown(texts: Sequence[str], tool: Tokenizer) -> dict[str, int]:
    """How often each character occurs in unknown tokens of `texts`, of those that give an unknown token alone. Empty for a vocabulary of
    words, which knows no characters."""
    if tool.vocabulary.words:
        return {}
    counts = Counter[str]()
    for text, (ids, places) in zip(texts, tool.encode_offsets(texts), strict=True):
        for index, (start, end) in zip(ids, places, strict=True):
            if tool.vocabulary.is_unknown(index):
                counts.update(text[start:end])
    known = dict(zip(counts, tool.encode([*counts]), strict=True))
    return {one: counts[one] for one in sorted(counts) if any(map(tool.vocabulary.is_unknown, known[one]))}


def listed(counts: Mapping[str, int]) -> str:
    """The most frequent characters, with their numbers and names: `U+00AD SOFT HYPHEN 31, U+FEFF ZERO WIDTH NO-BREAK SPACE 2`."""
    ranked = sorted(counts, key=lambda one: (-counts[one], one))
    shown = [f"{named(one)} {counts[one]:,}" for one in ranked[:SHOWN]]
    rest = ranked[SHOWN:]
    return ", ".join([*shown, *([f"{len(rest):,} others {sum(counts[one] for one in rest):,}"] if rest else [])])


def named(character: str) -> str:
    """`ü U+00FC LATIN SMALL LETTER U WITH DIAERESIS`, without the character itself where it shows nothing or joins the one before it."""
    category = unicodedata.category(character)
    shown = "" if category[0] in "CMZ" else f"{character} "
    return f"{shown}U+{ord(character):04X} {unicodedata.name(character, 'control' if category == 'Cc' else 'unnamed')}"
