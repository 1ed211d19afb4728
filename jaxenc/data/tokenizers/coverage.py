"""Which characters of a text a new vocabulary has pieces for."""

import sys
from collections import Counter
from collections.abc import Container, Mapping

SHARE = 0.99995  # of a text's characters that get pieces; the character_coverage of spm_train
SHOWN = 3  # characters that a message names


def frequent(counts: Mapping[str, int], least: int) -> list[str]:
    """The most frequent characters, ties by code point: as many as make up SHARE of the text, or `least` where that is more."""
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    missing, held = SHARE * sum(counts.values()), 0
    for number, character in enumerate(ranked):
        if held >= missing and number >= least:
            return ranked[:number]
        held += counts[character]
    return ranked


def report(counts: Counter[str], known: Container[str], unknown: str) -> None:
    """Prints to stderr for which share of a text the vocabulary has no pieces, with its most frequent characters; nothing for a share of 0.

    counts: of the characters of the normalized text. known: those with a piece. unknown: what the message calls the others, such as <unk>.
    """
    left = Counter({character: count for character, count in counts.items() if character not in known and not character.isspace()})
    if left:
        names = ", ".join(f"{character!r} (U+{ord(character):04X})" for character, _ in left.most_common(SHOWN))
        share = left.total() / counts.total()
        rare = f"{len(left):,} rare ones, most often {names}" if len(left) > 1 else names
        print(f"tokenizer: {share:.4%} of the characters are {unknown}: {rare}", file=sys.stderr)
