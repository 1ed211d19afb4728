"""Pieces that no text gives: a sign that a vocabulary is read by another rule than the one it was made for."""

import json
import sys
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from jaxenc.data.tokenizers.file_names import SETTINGS
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD, PublishedRules, WordPieceRules

MANY = 0.01  # share of the pieces; bert-base-uncased has 0.00003


def unreachable(pieces: Sequence[str], rules: PublishedRules | WordPieceRules) -> list[str]:
    """Those of `pieces` that no text gives under `rules`.

    A single character inside of words (`##京`, `##!`) is left out where it is also a piece by itself: published vocabularies have both
    forms of characters that are always words of their own.
    """
    words = {piece: f"a{piece[2:]}" if piece.startswith("##") and piece != "##" else piece for piece in pieces}
    # One text of all pieces: half the time of a call for each (measured).
    read = rules.splitter.pre_tokenize_str(rules.normalizer.normalize_str(" ".join(words.values())))
    found = {word for word, _ in read if len(word) <= LONGEST_WORD}
    doubled = lambda piece: len(piece) == 3 and piece.startswith("##") and piece[2:] in words
    return [piece for piece, word in words.items() if word not in found and not doubled(piece)]


def report(path: Path, tool: Tokenizer, rules: PublishedRules | WordPieceRules) -> None:
    """Prints a line to stderr where `rules` keep more than MANY of the pieces of the vocabulary at `path` from being found. It names the
    settings under which they are found, if there are such."""
    if line := _warning(path, tool, rules):
        print(line, file=sys.stderr)


def _warning(path: Path, tool: Tokenizer, rules: PublishedRules | WordPieceRules) -> str:
    special = set(tool.vocabulary.reserved)
    pieces = [tool.token(index) for index in range(tool.vocabulary.size) if index not in special]
    lost = unreachable(pieces, rules)
    lost = [piece for piece, ids in zip(lost, tool.encode(lost), strict=True) if [*map(tool.token, ids)] != [piece]]  # not an added one
    if len(lost) <= MANY * len(pieces):
        return ""
    better, still = _better(lost, rules, len(pieces)) if isinstance(rules, PublishedRules) else (None, lost)
    shown = [piece for piece in lost if piece not in still] or lost
    share = f"{len(lost) / len(pieces):.0%} of its pieces, {len(lost):,} of {len(pieces):,}"
    line = f"warning: {path}: no text gives {share}, such as {', '.join(map(repr, shown[:3]))}"
    if better is None:
        return f"{line}; check that it is the vocabulary of your model"
    ours, theirs = (_named(one) for one in (rules, better))
    was = json.dumps({name: value for name, value in ours.items() if value != theirs[name]})
    # All settings, also those that stay: where no file has them yet, convert/tf.py may have chosen them by the capital letters.
    return f"{line}, as texts are read with {was}; if that is wrong, put {json.dumps(theirs)} in {path.with_name(SETTINGS)}"


def _named(rules: PublishedRules) -> dict[str, bool]:
    return {name: value for name, value in rules.settings.items() if isinstance(value, bool)}


def _better(lost: Sequence[str], rules: PublishedRules, count: int) -> tuple[PublishedRules | None, Container[str]]:
    """The rule that changes least among those that leave at most MANY of `count` pieces unreachable, else the best one if it finds half of
    `lost`, else None; and the pieces that it does not find. What a text gives under `rules`, it gives where less is changed."""
    left = {}
    for other in _others(rules):
        left[other] = set(unreachable(lost, other))
        if len(left[other]) <= MANY * count:
            return other, left[other]
    best = min(left, key=lambda other: len(left[other]), default=None)
    return (best, left[best]) if best is not None and len(left[best]) <= len(lost) / 2 else (None, ())


def _others(rules: PublishedRules) -> Iterator[PublishedRules]:
    """The rules that change fewer characters than `rules`, those with the fewest changes first."""
    steps = [(rules.lowercase, False, rules.split_chinese), (False, False, rules.split_chinese)]
    steps += [(rules.lowercase, rules.strip_accents, False), (rules.lowercase, False, False), (False, False, False)]
    yield from (other for other in dict.fromkeys(PublishedRules(*step) for step in steps) if other != rules)
