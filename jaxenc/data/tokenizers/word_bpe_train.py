"""Training a vocabulary of words' pieces by merges, by the library."""

import json
from collections.abc import Iterable, Sequence

import tokenizers as library
from tokenizers import models, trainers

from jaxenc.data.tokenizers import alphabet, checks, coverage, merges
from jaxenc.data.tokenizers.merges import Merges
from jaxenc.data.tokenizers.wordpiece_rules import WordPieceRules


def trained(texts: Iterable[str], vocab_size: int, rules: WordPieceRules, specials: Sequence[str], end: str) -> tuple[list[str], Merges]:
    """(at most `vocab_size` pieces by id, the merges by rank); the same for the same texts.

    The pieces: `specials`; every letter with `end`, as it ends a word; the letters that can stand before another; merges. end: of a piece
    that ends a word. texts: read once, as `alphabet.counted` does; the trainer's memory is that of the different words. A pair of pieces
    that is seen once is not merged. A line on stderr names the characters that are not letters: the first of `specials` stands for each.
    Raises UserError when no text holds a character, or when vocab_size leaves no room beside the specials and the letters.
    """
    with alphabet.counted(texts, rules) as (found, again):
        first = [*specials, *(letter + end for letter in found.letters)]
        checks.size(vocab_size, len(first) + len(found.inner), "the specials and characters")
        unused = {*found.letters} - {*found.inner}  # the trainer wants every letter without `end` too
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size + len(unused),
            min_frequency=2,
            special_tokens=first,
            initial_alphabet=list(found.letters),
            limit_alphabet=len(found.letters),
            end_of_word_suffix=end,
            show_progress=False,
        )
        tool = library.Tokenizer(models.BPE(end_of_word_suffix=end))
        tool.normalizer, tool.pre_tokenizer = rules.normalizer, rules.splitter
        tool.train_from_iterator(again, trainer)
    coverage.report(found.counts, frozenset(found.letters), specials[0])
    model = json.loads(tool.to_str())["model"]
    pieces = [piece for piece in sorted(model["vocab"], key=model["vocab"].__getitem__) if piece not in unused]
    return pieces, [merges.pair(merge) for merge in model["merges"]]
