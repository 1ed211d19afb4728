"""Which characters of a text a new vocabulary has pieces for."""

import sys
from collections import Counter
from collections.abc import Container, Mapping

SHARE = 0.99995  # of the characters of a text that pieces are made for, as spm_train's character_coverage
MOST = 3  # characters that a message names


def frequent(counts: Mapping[str, int], least: int) -> list[str]:
    """The most frequent characters, ties by code point: as many as make up SHARE of all, and `least` where there are so many."""
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    missing, held = SHARE * sum(counts.values()), 0
    for number, character in enumerate(ranked):
        if held >= missing and number >= least:
            return ranked[:number]
        held += counts[character]
    return ranked


def report(counts: Counter[str], known: Container[str], unknown: str) -> None:
    """Says on stderr how much of a text is in characters that the vocabulary does not know; nothing where it knows all.

    counts: of the characters of the text as it is read. known: those with a piece. unknown: what the others are read as.
    """
    left = Counter({character: count for character, count in counts.items() if character not in known and not character.isspace()})
    if left:
        names = ", ".join(f"{character!r} (U+{ord(character):04X})" for character, _ in left.most_common(MOST))
        share = left.total() / counts.total()
        rare = f"{len(left):,} rare ones" if len(left) > 1 else "a rare one"
        print(f"tokenizer: {share:.4%} of the characters are {unknown}: {rare}, {names} the most frequent", file=sys.stderr)
