"""Training a WordPiece vocabulary, by the library."""

from collections.abc import Iterable, Sequence

import tokenizers as library
from tokenizers import models, trainers

from jaxenc.data.tokenizers import alphabet, checks, coverage
from jaxenc.data.tokenizers.wordpiece_rules import WordPieceRules


def trained(texts: Iterable[str], vocab_size: int, rules: WordPieceRules, specials: Sequence[str]) -> list[str]:
    """At most `vocab_size` pieces by id, `specials` first; the same for the same texts.

    texts: read once, as `alphabet.counted` does. A pair of pieces that is seen once is not merged. Every letter is a piece, also as a
    continuation where it can be one. Words with another character become [UNK]; a line on stderr names these characters.
    Raises UserError when no text holds a character, or when vocab_size leaves no room beside the specials and the alphabet.
    """
    with alphabet.counted(texts, rules) as (found, again):
        first = [*specials, *("##" + c for c in found.inner)]
        checks.size(vocab_size, len(first) + len(found.letters), "the specials and characters")
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=first,
            initial_alphabet=list(found.letters),
            limit_alphabet=len(found.letters),
            show_progress=False,
        )
        tool = library.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tool.normalizer, tool.pre_tokenizer = rules.normalizer, rules.splitter
        tool.train_from_iterator(again, trainer)
    coverage.report(found.counts, frozenset(found.letters), "in words that are [UNK]")
    ids = tool.get_vocab()
    return sorted(ids, key=ids.__getitem__)
