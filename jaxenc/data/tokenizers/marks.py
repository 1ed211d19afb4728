"""How many of a text's marks a tokenizer drops: vowel signs, tones and joiners, without which many scripts cannot be read."""

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

JOINERS = "\u200c\u200d"  # meaningful in Persian, in the scripts of India and in emoji
MANY = 0.05  # lost marks per letter: more than French, German or Spanish lose with their accents
PROBE = "e\u0301 \u0915\u093f \u0915\u094d\u200d\u0937"
SAMPLE = 1 << 20  # characters


@dataclasses.dataclass(frozen=True)
class Marks:
    """Counts in a decomposed (NFD) text. letters: of category L; marks: of category M, and JOINERS; lost: marks the tokenizer drops."""

    letters: int = 0
    marks: int = 0
    lost: int = 0

    def __add__(self, other: "Marks") -> "Marks":
        return Marks(self.letters + other.letters, self.marks + other.marks, self.lost + other.lost)

    @property
    def many(self) -> bool:
        """Whether so many are lost that the text changes its meaning."""
        return self.lost > MANY * self.letters

    @property
    def summary(self) -> str:
        """`97% of the text's marks (vowel signs, tones, accents, joiners), 31 per 100 letters`"""
        share, density = self.lost / max(self.marks, 1), 100 * self.lost / max(self.letters, 1)
        return f"{share:.0%} of the text's marks (vowel signs, tones, accents, joiners), {density:.0f} per 100 letters"


def count(texts: Iterable[str], written: Callable[[str], str]) -> Marks:
    """The marks of `texts`, and how many of them the normalizer `written` drops. All 0 where it drops none."""
    return _count(texts, written) if _count([PROBE], written).lost else Marks()


def _count(texts: Iterable[str], written: Callable[[str], str]) -> Marks:
    before, after = Counter[str](), Counter[str]()
    for text in texts:
        before.update(unicodedata.normalize("NFD", text))
        if not text.isascii():
            after.update(unicodedata.normalize("NFD", written(text)))
    letters = sum(number for character, number in before.items() if character.isalpha())
    there, left = (sum(number for character, number in counts.items() if is_mark(character)) for counts in (before, after))
    return Marks(letters, there, there - left)


def is_mark(character: str) -> bool:
    """Whether a character is of Unicode's category M, or one of JOINERS."""
    return character in JOINERS or unicodedata.category(character).startswith("M")


def sampled(texts: Iterable[str], sample: list[str], most: int = SAMPLE) -> Iterator[str]:
    """Yields `texts` and puts evenly spaced ones into `sample`: at most `most` characters, or one text; the same for the same texts."""
    every, held = 1, 0
    for number, text in enumerate(texts):
        if number % every == 0:
            sample.append(text)
            held += len(text)
        while held > most and len(sample) > 1:
            del sample[1::2]
            every, held = 2 * every, sum(map(len, sample))
        yield text
