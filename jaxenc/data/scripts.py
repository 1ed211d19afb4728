"""The scripts of a text, by the Unicode names of its letters."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import chain

# Scripts in which no blanks stand between words.
UNSPACED = frozenset(
    ("CJK", "Hiragana", "Katakana", "Katakana-hiragana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese")
)


def script_of(text: Iterable[str]) -> str:
    """The script of the first letter, as the first word of its Unicode name says it: `Latin`, `CJK`, `Devanagari`; `Other` without one."""
    for character in text:
        if character.isalpha():
            name = "LATIN" if character.isascii() else unicodedata.name(character, "OTHER").split()[0]
            return name if name == "CJK" else name.capitalize()
    return "Other"


def is_unspaced(texts: Iterable[str]) -> bool:
    """Whether most letters of the texts are of scripts that are written without blanks between words."""
    letters = {one: count for one, count in Counter(chain.from_iterable(texts)).items() if one.isalpha()}
    return 2 * sum(count for one, count in letters.items() if script_of(one) in UNSPACED) > sum(letters.values())
