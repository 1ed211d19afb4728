"""The ids of the sentences of a line: those of the line, cut where its sentences end.

A vocabulary may mark the start of a text or the blank before a word (`▁` of unigram), and a piece may hold the mark that ends a sentence.
So where no blank stands between two sentences, as in Burmese, Chinese, Japanese, Khmer or Thai, the ids of the second one alone are not
those that the line gives. Such sentences are encoded together. A sentence after a blank is encoded alone, with the blank before it: its
first word is then the one of the line.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.word_cache import Encoded, flat, merged


def encode(tool: Tokenizer, lines: Sequence[str]) -> tuple[Encoded, np.ndarray]:
    """(the ids of all sentences of `lines`, i64 [lines]: the number of sentences of each line).

    The ids of the sentences of a line, one sentence after the other, are those that `Tokenizer.encode` gives for the line without the
    blanks at its ends; of two nearly equal cuts of a word the sentencepiece library may take the other one, as it adds up float32. A piece
    that reaches over the end of a sentence belongs to that sentence, and the first piece of a sentence is the first of a word.
    """
    cut = [tool.sentences(line) for line in lines]
    counts = np.array([len(sentences) for sentences in cut], np.int64)
    if tool.cuts_at_blanks and all(map(_plain, lines)):
        return tool.encode_flat([sentence for sentences in cut for sentence in sentences]), counts
    runs = [run for line, sentences in zip(lines, cut, strict=True) for run in _runs(tool, line, sentences)]
    alone = tool.encode_flat([sentence if len(run) == 1 else "" for run in runs for sentence in run])
    joined = [run for run in runs if len(run) > 1]
    if not joined:
        return alone, counts
    together = flat([sentence for run in _together(tool, joined) for sentence in run])
    return merged(alone, together, np.array([len(run) > 1 for run in runs for _ in run], bool)), counts


def _runs(tool: Tokenizer, line: str, sentences: Sequence[str]) -> Sequence[Sequence[str]]:
    """The sentences of a line in runs, each of which is encoded as one text."""
    if not tool.cuts_at_blanks:
        return [sentences] if sentences else []
    if _plain(line):
        return [[sentence] for sentence in sentences]
    starts = [0, *(at for at, sentence in enumerate(sentences) if at and _apart(sentence)), len(sentences)]
    return [sentences[start:end] for start, end in itertools.pairwise(starts) if start < end]


def _plain(line: str) -> bool:
    """Whether blanks stand between all sentences of a line, as is known without a look at them."""
    return line.isascii() and line.isprintable()


def _apart(sentence: str) -> bool:
    """Whether a sentence starts with U+0020: what another blank becomes depends on the vocabulary."""
    return sentence[0] == " "


def _together(tool: Tokenizer, runs: Sequence[Sequence[str]]) -> Iterator[list[tuple[list[int], list[int]]]]:
    """Of each run the ids of its sentences, and of each id the number of its word."""
    for run, (ids, words, places) in zip(runs, tool.encode_places(["".join(run) for run in runs]), strict=True):
        ends = np.cumsum([len(sentence) for sentence in run])
        cuts = [0, *np.searchsorted([start for start, _ in places], ends[:-1]).tolist(), len(ids)]
        yield [(ids[start:end], words[start:end]) for start, end in itertools.pairwise(cuts)]
