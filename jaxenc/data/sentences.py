"""Where sentences end: a small rule, enough to give next-sentence pairs their boundaries."""

import re

_END = re.compile(r"[.!?][.!?]*[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W\d_a-z])|[。！？]+[」』”’）]*")
_WORD_BEFORE = re.compile(r"([^\W\d_](?:[\w.]*\w)?)\.$")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon st sr jr gen col capt lt sgt gov sen rep messrs mme mlle vs etc fig figs eq no nos vol vols ch sec p pp ed"
    " eds cf viz al e.g i.e eg ie inc ltd co corp dept approx ca jan feb mar apr jun jul aug sep sept oct nov dec".split()
)


def split(line: str) -> list[str]:
    """The sentences of one paragraph, none of them blank; together they are the paragraph without the blanks at its two ends.

    The blanks between two sentences start the second one, for byte-level BPE writes them into its first word. Its ids of the
    sentences are then those of the whole paragraph, but for `。`, `！` or `？` with a mark that is no letter, digit or blank right
    behind them (the two are one word of the paragraph), and for U+001C to U+001F, which are blanks in Python only.

    A sentence ends behind `.`, `!` or `?` (and closing quotes or brackets) when white space and then a letter that is not one of a-z
    follow, perhaps behind opening quotes or brackets; and behind `。`, `！`, `？`. A full stop ends nothing behind a single letter
    other than I (an initial), a word with dots inside (U.S.), or a common English abbreviation. Other scripts without case split
    by the same marks.
    """
    line = line.strip()
    out, start = [], 0
    for match in _END.finditer(line):
        if line[match.start()] == "." and _is_abbreviation(line[max(start, match.start() - 24) : match.start() + 1]):
            continue
        end = match.start() + len(match.group().rstrip())
        out.append(line[start:end])
        start = end
    out.append(line[start:])
    return [sentence for sentence in out if sentence.strip()]


def _is_abbreviation(before: str) -> bool:
    found = _WORD_BEFORE.search(before)
    if not found:
        return False
    word = found.group(1)
    return (len(word) == 1 and word != "I") or "." in word or word.lower() in _ABBREVIATIONS
