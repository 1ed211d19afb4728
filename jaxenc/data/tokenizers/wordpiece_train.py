"""Training a WordPiece vocabulary, by the library."""

import collections
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import tokenizers as library
from tokenizers import models, normalizers, trainers

from jaxenc.data.tokenizers import checks, coverage
from jaxenc.data.tokenizers.wordpiece_rules import WordPieceRules
from jaxenc.errors import UserError
from jaxenc.files import user_errors

ALPHABET = 1000  # characters that get a piece however rare; the limit_alphabet of the library's BertWordPieceTokenizer


def trained(texts: Iterable[str], vocab_size: int, rules: WordPieceRules, specials: Sequence[str]) -> list[str]:
    """At most `vocab_size` pieces by id, `specials` first; the same for the same texts.

    texts: read once and kept in a temporary file, so memory does not grow with the corpus. A pair of pieces that is seen once is not
    merged. The most frequent characters are pieces, each also as a continuation where it can be one: ALPHABET of them, or as many as
    coverage.SHARE of the text takes. Words with another character become [UNK]; a line on stderr names these characters.

    The library numbers the continuation characters in the order of a randomly seeded hash map and breaks ties by these numbers,
    so two trainings would differ. Naming all of them beforehand, sorted, makes the result a function of the texts.
    Raises UserError when no text holds a character, or when vocab_size leaves no room beside the specials and the alphabet.
    """
    normalizer, splitter = rules.normalizer, rules.splitter
    with (
        user_errors(tempfile.gettempdir(), "free some space there, or set TMPDIR to a folder with more"),
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as spool,
    ):
        counts = _characters(_spooled(texts, spool), normalizer)
        letters = sorted(coverage.frequent(counts, ALPHABET))
        continuations = ["##" + c for c in letters if len(splitter.pre_tokenize_str(normalizer.normalize_str(f"a{c}a"))) == 1]
        first = [*specials, *continuations]
        if not letters:
            raise UserError("tokenizer: the input holds no text; name files with at least one line of text")
        checks.size(vocab_size, len(first) + len(letters), "the specials and characters")
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=first,
            initial_alphabet=letters,
            limit_alphabet=len(letters),
            show_progress=False,
        )
        tool = library.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tool.normalizer, tool.pre_tokenizer = normalizer, splitter
        spool.seek(0)
        tool.train_from_iterator((line.rstrip("\n") for line in spool), trainer)
    coverage.report(counts, frozenset(letters), "in words that are [UNK]")
    ids = tool.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _spooled(texts: Iterable[str], spool: IO[str]) -> Iterator[str]:
    for text in texts:
        spool.write(text.replace("\n", " ") + "\n")
        yield text


def _characters(texts: Iterable[str], normalizer: normalizers.Normalizer) -> collections.Counter[str]:
    """How often each character occurs in the normalized `texts`, without white space."""
    raw: collections.Counter[str] = collections.Counter()
    for text in texts:
        raw.update(text if text.isascii() else normalizer.normalize_str(text))
    counts: collections.Counter[str] = collections.Counter()
    for character, count in raw.items():  # ASCII texts were not normalized yet: no two of their characters compose
        for part in normalizer.normalize_str(character).split():
            counts.update({piece: count for piece in part})
    return counts
