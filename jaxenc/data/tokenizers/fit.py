"""How a new vocabulary fits the text it was trained on: how long its pieces are, and how many of them are too rare to learn from."""

import dataclasses
import re
from collections.abc import Iterator, Sequence

import numpy as np

from jaxenc.data.scripts import is_unspaced
from jaxenc.data.tokenizers.lines import batches
from jaxenc.data.tokenizers.tokenizer import Tokenizer

SAMPLE = 1 << 22  # characters of the text that are encoded
# Gowda and May, "Finding the optimal vocabulary size for neural machine translation" (2020): the largest vocabulary of which 95 % of the
# pieces are seen 100 times or more.
OFTEN, MOST_RARE = 100, 0.05
LEAST = 5  # occurrences in the sample that stand for OFTEN in the text, below which a count says too little
SINGLE = re.compile("(##|[▁Ġ])?.?(</w>)?", re.DOTALL)  # a piece of one character, with the marks of all kinds
LONGEST = 20  # characters of a mean word, above which blanks do not stand between words, whatever the script, as in DNA


@dataclasses.dataclass(frozen=True)
class Fit:
    """Of a sample of the text: characters, tokens, and words (what stands between blanks), 0 where no blanks stand between words; rare: the
    share of the pieces that the text holds fewer than OFTEN times, -1 where the sample is too small a part of it to tell. Single characters
    are not counted, since a vocabulary of any size has them."""

    characters: int
    words: int
    tokens: int
    rare: float

    @property
    def lines(self) -> Iterator[str]:
        """The lines that describe it, for a text with a token."""
        each = f"{self.characters / self.tokens:.2f} characters a token"
        yield f"{each}, {self.tokens / self.words:.2f} tokens a word" if self.words else each
        if self.rare > MOST_RARE and self.words:  # the rule comes from languages with blanks between words
            rule = f"a rule of thumb is {MOST_RARE:.0%} at most: use more text or a smaller --vocab-size"
            yield f"{self.rare:.1%} of its pieces of two or more characters are seen fewer than {OFTEN} times; {rule}"
        elif self.rare >= 0:
            yield f"{self.rare:.1%} of its pieces of two or more characters are seen fewer than {OFTEN} times"


def measured(tool: Tokenizer, sample: Sequence[str], characters: int) -> Fit:
    """sample: texts, evenly spaced over all; characters: of all texts."""
    counts = np.zeros(tool.vocabulary.ids, np.int64)
    held = sum(map(len, sample))
    for batch in batches(sample):
        counts += np.bincount(tool.encode_flat(batch).tokens, minlength=len(counts))
    often = OFTEN * held / max(characters, 1)
    pieces = [at for at in np.delete(np.arange(len(counts)), tool.vocabulary.reserved) if not SINGLE.fullmatch(tool.token(at))]
    rare = float((counts[pieces] < often).mean()) if often >= LEAST and pieces else -1.0
    words = 0 if is_unspaced(sample) else sum(len(text.split()) for text in sample)
    return Fit(held, words if held <= LONGEST * words else 0, int(counts.sum()), rare)
