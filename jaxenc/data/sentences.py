"""Where sentences end: a small rule, enough to give next-sentence pairs their boundaries."""

import functools
import re

from jaxenc.data import sentence_terminal

_MARKS = frozenset(sentence_terminal.characters()) - frozenset(sentence_terminal.COMMAS)
# Marks that stand between words, with a blank after them where a sentence ends.
_SPACED = frozenset(".!?\u2024\u203c\u203d\u2047\u2048\u2049\u2e2e\u2e3c\u2e53\u2e54")
# Full stops that also stand in numbers and, several of them, for an ellipsis.
_DOTS = frozenset("\ufe52\uff0e")
_CLOSING = "\"'”’»›)\\]}」』）】〉》］｝〕〗〙〛﹂﹄"
_ENGLISH = frozenset(".!?")
_LAST_WORD = re.compile(r"([^\W\d_](?:[\w.]*\w)?)\Z")
_LONGEST_WORD = 24  # characters before a full stop that are looked at
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon st sr jr gen col capt lt sgt gov sen rep messrs mme mlle vs etc fig figs eq no nos vol vols ch sec p pp ed"
    " eds cf viz al e.g i.e eg ie inc ltd co corp dept approx ca jan feb mar apr jun jul aug sep sept oct nov dec".split()
)


def split(line: str) -> list[str]:
    """The sentences of one paragraph, none of them blank; together they are the paragraph without the blanks at its two ends.

    The blanks between two sentences start the second one, because byte-level BPE writes them into its first word. tokenizers/line_ids.py
    encodes the sentences, so that their ids are those of the whole paragraph.

    A sentence ends after `.`, `!` or `?` (and closing quotes or brackets) when white space and then a letter that is not one of a-z
    follow, perhaps after opening quotes or brackets. It also ends after every other character with Unicode's property Sentence_Terminal
    (`sentence_terminal`: 。 । ؟ ۔ ። ။ ។ ։ and more) with its closing quotes and brackets, whatever follows; marks of Latin script such as ‼
    and ‽ are treated as `!` is.

    Exceptions: a full stop ends nothing after a single letter other than I (an initial), a word with dots inside (U.S.), or a common
    English abbreviation; full-width ones end nothing between digits or in a row (an ellipsis). What stands between two marks and has no
    letter, such as the number of a verse (॥ १ ॥), belongs to the sentence before it.
    """
    line = line.strip()
    out, start = [], 0
    for match in _rule(_ENGLISH if line.isascii() else _MARKS.intersection(line) | _ENGLISH).finditer(line):
        at, end = match.span()
        mark = line[at]
        if mark == "." and _is_abbreviation(line[max(start, at - _LONGEST_WORD, line.rfind(" ", start, at) + 1) : at]):
            continue
        if mark not in _SPACED and out and not any(map(str.isalpha, line[start:end])):
            out[-1] += line[start:end]
        else:
            out.append(line[start:end])
        start = end
    out.append(line[start:])
    return [sentence for sentence in out if sentence and not sentence.isspace()]


@functools.lru_cache(1024)
def _rule(marks: frozenset[str]) -> re.Pattern[str]:
    """What ends a sentence in a text with these marks: a pattern of all marks would take four times as long.

    It begins with one character of a set, for which the library looks in half the time that a repeated one takes (measured).
    """
    joined = lambda found: re.escape("".join(sorted(found)))
    spaced, dots, others = joined(marks & _SPACED), joined(marks & _DOTS), joined(marks - _SPACED - _DOTS)
    ends = [rf"[{spaced}][{spaced}]*[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[^\W\d_a-z])"]
    firsts = [f"[{others}]"] if others else []
    if dots:
        firsts.append(rf"(?<![\d{dots}])[{dots}](?![{dots}])|(?<=\d)[{dots}](?![\d{dots}])")
    if firsts:
        ends.append(f"(?:{'|'.join(firsts)})[{others}!?.]*[{_CLOSING}]*")
    return re.compile("|".join(ends))


@functools.lru_cache(1 << 14)
def _is_abbreviation(before: str) -> bool:
    """Whether the full stop after `before`, what stands between the last blank and it, belongs to its word."""
    found = _LAST_WORD.search(before)
    if not found:
        return False
    word = found.group(1)
    return (len(word) == 1 and word != "I") or "." in word or word.lower() in _ABBREVIATIONS
