"""Words of a text by their characters, for scripts without blanks between words: Burmese, Chinese, Japanese, Khmer, Lao, Thai."""

import dataclasses
import unicodedata
from collections.abc import Iterator, Sequence
from typing import overload

from jaxenc.data.tokenizers import Tokenizer

Place = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Spans(Sequence[str]):
    """A text that is read as it stands, and a sequence of its words. places: (first character, end) of each word, in any order; they may
    overlap and leave characters out."""

    text: str
    places: tuple[Place, ...]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        """The characters of one word, or of several."""
        if isinstance(at, slice):
            return [self.text[start:end] for start, end in self.places[at]]
        start, end = self.places[at]
        return self.text[start:end]

    def shown(self, at: int, around: int) -> str:
        """A word in brackets, with the text from `around` words before it to as many after it."""
        start, end = self.places[at]
        first = self.places[at - around][0] if at > around else 0
        last = self.places[at + around][1] if at + around < len(self) - 1 else len(self.text)
        dots = ("… " if first > 0 else "", " …" if last < len(self.text) else "")
        return f"{dots[0]}{self.text[first:start]}[{self.text[start:end]}]{self.text[end:last]}{dots[1]}"


def of_pieces(tool: Tokenizer, text: str, word: str = "") -> Spans:
    """The pieces of a text as its words. Pieces of the same character, such as bytes, are one; those of white space are none.

    word: each of its occurrences (`find`) is one word, instead of all pieces that overlap it.
    """
    found = list(find(tool, text, word)) if word else []
    places: list[Place] = []
    for start, end in tool.encode_offsets([text])[0][1]:
        if any(start < last and first < end for first, last in found) or not text[start:end].strip():
            continue
        if places and start < places[-1][1]:
            first, last = places.pop()
            start, end = first, max(end, last)
        places.append((start, end))
    return Spans(text, tuple(sorted([*places, *found])))


def find(tool: Tokenizer, text: str, word: str) -> Iterator[Place]:
    """(first character, end) of the occurrences of `word` in `text`, which do not overlap. Both are compared as the vocabulary's normaliser
    writes them. An occurrence neither starts at a mark (a vowel sign, a tone, an accent) nor ends before one, nor is it a part of what the
    normaliser composes, such as a jamo of a Hangul syllable: there the text has another syllable. The time is linear in the text."""
    wanted = tool.written(word).strip()
    if not wanted:
        return
    (written, places), after = tool.written_places(text), 0
    at = written.find(wanted)
    while at >= 0:
        start, last, step = places[at][0], at + len(wanted), 1
        if start >= after and not _is_mark(text, start):
            # Characters that are composed to one may be the place of the first alone: an occurrence then ends where the next one begins.
            ends = (places[last - 1][1], places[last][0] if last < len(places) else len(text))
            distinct = dict.fromkeys(_before_no_mark(text, end) for end in ends)
            if end := next((end for end in distinct if _is(tool, text[start:end], wanted)), 0):
                yield start, end
                after, step = end, len(wanted)
        at = written.find(wanted, at + step)


def _is(tool: Tokenizer, held: str, wanted: str) -> bool:
    return tool.written(held).strip() == wanted


def _before_no_mark(text: str, end: int) -> int:
    """`end`, or the first place after it that is not before a mark."""
    while _is_mark(text, end):
        end += 1
    return end


def _is_mark(text: str, at: int) -> bool:
    return at < len(text) and unicodedata.category(text[at])[0] == "M"
