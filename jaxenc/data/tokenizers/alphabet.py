"""The characters of the texts that a vocabulary is trained on, counted before the texts are read again.

The library's trainers number the forms that a character has inside or at the end of a word in the order of a randomly seeded hash map, and
break ties by these numbers: two trainings would differ. A trainer that names all forms beforehand, sorted, gives the same vocabulary for
the same texts.
"""

import contextlib
import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from tokenizers import normalizers

from jaxenc.data.tokenizers import coverage
from jaxenc.data.tokenizers.wordpiece_rules import WordPieceRules
from jaxenc.errors import UserError
from jaxenc.files import user_errors

LEAST = 1000  # characters that get a piece however rare; the limit_alphabet of the library's BertWordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class Alphabet:
    """counts: how often each character occurs in the normalized texts, white space left out. letters: those that get a piece, sorted.
    inner: the letters that can stand next to another in a word; punctuation marks and Chinese characters cannot."""

    counts: Counter[str]
    letters: Sequence[str]
    inner: Sequence[str]


@contextlib.contextmanager
def counted(texts: Iterable[str], rules: WordPieceRules) -> Iterator[tuple[Alphabet, Iterator[str]]]:
    """(the characters of `texts` as `rules` read them, the texts once more).

    texts: read once and kept in a temporary file, so memory does not grow with the corpus. The most frequent characters are letters: LEAST
    of them, or as many as coverage.SHARE of the text takes. Raises UserError when no text holds a character, and for a full disk.
    """
    with (
        user_errors(tempfile.gettempdir(), "free some space there, or set TMPDIR to a folder with more"),
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as spool,
    ):
        counts = _characters(_spooled(texts, spool), rules.normalizer)
        letters = sorted(coverage.frequent(counts, LEAST))
        if not letters:
            raise UserError("the input holds no text", "tokenizer", "name files with at least one line of text")
        normalizer, splitter = rules.normalizer, rules.splitter
        inner = [c for c in letters if len(splitter.pre_tokenize_str(normalizer.normalize_str(f"a{c}a"))) == 1]
        spool.seek(0)
        yield Alphabet(counts, letters, inner), (line.rstrip("\n") for line in spool)


def _spooled(texts: Iterable[str], spool: IO[str]) -> Iterator[str]:
    for text in texts:
        spool.write(text.replace("\n", " ") + "\n")
        yield text


def _characters(texts: Iterable[str], normalizer: normalizers.Normalizer) -> Counter[str]:
    """How often each character occurs in the normalized `texts`, without white space."""
    raw: Counter[str] = Counter()
    for text in texts:
        raw.update(text if text.isascii() else normalizer.normalize_str(text))
    counts: Counter[str] = Counter()
    for character, count in raw.items():  # ASCII texts were not normalized yet: no two of their characters compose
        for part in normalizer.normalize_str(character).split():
            counts.update({piece: count for piece in part})
    return counts
