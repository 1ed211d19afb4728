"""Cuts long texts, puts texts in batches, and thins out long words: each bounds the time or the memory of a call."""

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD

BATCH = 1 << 17  # characters of the texts that are tokenised in one call
MOST_LONG = 1 << 22  # characters of longer words that are trained on: a character takes up to 60 bytes of memory (measured)
_LONG = re.compile(rf"(?<!\S)\S{{{LONGEST_WORD + 1},}}")


@dataclasses.dataclass
class LongWords:
    """Counts characters while `thinned` runs. all: of the texts; long: of words longer than LONGEST_WORD; used: those of long words that
    were kept."""

    all: int = 0
    long: int = 0
    used: int = 0

    @property
    def share(self) -> float:
        """The share of the text that is in long words."""
        return self.long / max(self.all, 1)

    @property
    def kept(self) -> int:
        """Characters that were trained on."""
        return self.all - (self.long - self.used)

    @property
    def left_out(self) -> float:
        """The share of the text that was not trained on."""
        return (self.long - self.used) / max(self.all, 1)


def thinned(texts: Iterable[str], counts: LongWords, most: int = MOST_LONG) -> Iterator[str]:
    """`texts` with at most `most` characters of words longer than LONGEST_WORD, which bounds the memory of a training.

    A language has few different words, but each line without blanks is a new one. All of them are kept until half of `most` is used. After
    that the kept part grows with the logarithm of what was read, so that it comes from all parts of a corpus of any size; it reaches `most`
    after a thousand times as much text.
    """
    half = most / 2

    def kept(match: re.Match[str]) -> str:
        counts.long += len(match.group())
        allowed = min(most, half * (1 + math.log2(max(1, counts.long / half)) / 10))
        part = match.group()[: int(allowed) - counts.used]
        if len(part) <= LONGEST_WORD:  # wait until more is allowed
            return " "
        counts.used += len(part)
        return part

    for text in texts:
        counts.all += len(text)
        yield _LONG.sub(kept, text) if len(text) > LONGEST_WORD else text


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


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Runs of `texts` of about BATCH characters: the library's results for all of them would take up to a gigabyte."""
    start = size = 0
    for number, text in enumerate(texts, 1):
        size += len(text)
        if size >= BATCH or number == len(texts):
            yield texts[start:number]
            start, size = number, 0
