"""A vocabulary of one's own from text: the implementation of `jaxenc tokenizer` and `jaxenc.train_tokenizer`."""

import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from jaxenc.data import readers
from jaxenc.data.folders import must_be_new
from jaxenc.data.readers import Counts, Reading
from jaxenc.data.readers.document import described
from jaxenc.data.tokenizers import bpe, fit, load, marks, training, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.lines import LongWords, thinned
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD
from jaxenc.errors import UserError
from jaxenc.files import made

# {type: module that trains it}; characters are a list of words
TYPES: Mapping[str, ModuleType] = {
    "wordpiece": wordpiece,
    "bpe": bpe,
    "word_bpe": word_bpe,
    "unigram": unigram,
    "characters": word_list,
}
CUT = ("wordpiece", "word_bpe")  # types that cut words of more than LONGEST_WORD characters
FEW = 0.01  # share of a text in such words up to which no message is printed
VOCAB_SIZE = 30000


def train_tokenizer(
    inputs: Sequence[str],
    out: str | Path,
    vocab_size: int = VOCAB_SIZE,
    type: str = "wordpiece",
    rule: Normalization = Normalization(),
    reading: Reading = Reading(),
    pretokenized: bool = False,
    workers: int = 1,
) -> Tokenizer:
    """Trains a vocabulary on `inputs` (see readers.inputs), saves it in the new folder `out`, and returns it.

    vocab_size: pieces, or words to predict, at most. type: one of TYPES. rule: how a text is normalised. reading: how inputs become
    documents. pretokenized: with `characters`, whether words are separated by blanks and each line is a sentence. workers: threads that
    count words; the result does not depend on it. A script must call this under its __main__ guard, as `training.train_and_save` says.

    What was left out, cut or lost, and how the pieces fit the text (fit.py), is printed to stderr. Raises UserError for an unknown type,
    for input that cannot be read, for text that gives no vocabulary, and for a folder that is not new.
    """
    if type not in TYPES:
        raise UserError("no such type", f"--type {type}", f"use {', '.join(TYPES)}")
    if type != "characters" and pretokenized:
        raise UserError("splits words itself", f"--type {type}", "use --type characters with --pretokenized, or leave that out")
    if isinstance(inputs, str):
        raise UserError("takes a list of inputs", f"--input {inputs}", "give [name] for a single one")
    out = Path(out)
    must_be_new(out, "--out")
    long_words, counts, sample = LongWords(), Counts(), []
    lines = _lines(inputs, reading, counts)
    lines = lines if type == "characters" else thinned(lines, long_words)
    own = {"pretokenized": pretokenized} if type == "characters" else {}
    train = functools.partial(TYPES[type].train, vocab_size=vocab_size, rule=rule, **own)
    with made(out) as folder:
        training.train_and_save(train, marks.sampled(lines, sample, fit.SAMPLE), folder, workers)
    tokenizer = load(out)
    _report(type, long_words)
    if tokenizer.vocabulary.size < vocab_size:
        less = "fewer words" if tokenizer.vocabulary.words else "fewer pieces"
        print(f"tokenizer: the text gave {less} than --vocab-size {vocab_size:,}; more text gives more", file=sys.stderr)
    if noticed := described(dataclasses.asdict(counts)):
        print(f"tokenizer: while reading: {noticed}", file=sys.stderr)
    if type != "characters":
        found = fit.measured(tokenizer, sample, long_words.kept)
        for line in found.lines if found.tokens else ():
            print(f"tokenizer: {line}", file=sys.stderr)
    lost = marks.count(sample, tokenizer.written)
    if lost.many:
        print(f"tokenizer: warning: --strip-accents drops {lost.summary}; leave it out to keep them", file=sys.stderr)
    return tokenizer


def _report(kind: str, counts: LongWords) -> None:
    long = f"words of more than {LONGEST_WORD} characters"
    if kind in CUT and counts.share > FEW:
        way = f"which --type {kind} cuts into parts of at most {LONGEST_WORD}; --type unigram and bpe find pieces anywhere in them"
        print(f"tokenizer: {counts.share:.1%} of the text is in {long}, {way}", file=sys.stderr)
    if counts.left_out:
        kept = f"of {counts.long:,} characters in {long}, {counts.used:,} are trained on"
        print(f"tokenizer: {counts.left_out:.1%} of the text was left out: {kept}", file=sys.stderr)


def _lines(inputs: Sequence[str], reading: Reading, counts: Counts) -> Iterator[str]:
    for document in readers.watched(readers.inputs(inputs, reading, counts), reading, counts, "tokenizer"):
        yield from document.lines
