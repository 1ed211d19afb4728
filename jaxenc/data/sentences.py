"""Where sentences end: a small rule, enough to give next-sentence pairs their boundaries."""

import re

_END = re.compile(r"[.!?][.!?]*[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W\d_a-z])|[。！？]+[」』”’）]*")
_WORD_BEFORE = re.compile(r"([^\W\d_](?:[\w.]*\w)?)\.$")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon st sr jr gen col capt lt sgt gov sen rep messrs mme mlle vs etc fig figs eq no nos vol vols ch sec p pp ed"
    " eds cf viz al e.g i.e eg ie inc ltd co corp dept approx ca jan feb mar apr jun jul aug sep sept oct nov dec".split()
)


def split(line: str) -> list[str]:
    """The sentences of one paragraph, none of them blank; together they hold all of it but the blanks between them.

    A sentence ends behind `.`, `!` or `?` (and closing quotes or brackets) when white space and then a letter that is not one of a-z
    follow, perhaps behind opening quotes or brackets; and behind `。`, `！`, `？`. A full stop ends nothing behind a single letter
    other than I (an initial), a word with dots inside (U.S.), or a common English abbreviation. Other scripts without case split
    by the same marks.
    """
    out, start = [], 0
    for match in _END.finditer(line):
        if line[match.start()] == "." and _is_abbreviation(line[max(start, match.start() - 24) : match.start() + 1]):
            continue
        out.append(line[start : match.end()].strip())
        start = match.end()
    out.append(line[start:].strip())
    return [sentence for sentence in out if sentence]


def _is_abbreviation(before: str) -> bool:
    found = _WORD_BEFORE.search(before)
    if not found:
        return False
    word = found.group(1)
    return (len(word) == 1 and word != "I") or "." in word or word.lower() in _ABBREVIATIONS
