"""How many tokens the words of a data folder have. Where a script puts no blanks between words, a whole sentence may be one."""

import math

import numpy as np

from jaxenc.data.store import Shards

# Tokens a word. English is below it with any vocabulary: 1.5 MB of it had 1.3 with a unigram vocabulary of 32,000 pieces, 1.8 with 2,000,
# 3.0 with 300, and 3.3 with a byte-level BPE of 300. A sentence that is one word has ten and more.
LIMIT = 3.5
RUNS, RUN = 256, 1024  # the sample: so many runs of so many tokens, evenly spaced


def tokens_a_word(shards: Shards) -> float:
    """Mean tokens of a word of a split, of all its tokens or of a sample of RUNS * RUN; infinite where the sample starts no word, and 0 for
    a split without tokens or one that does not say where words start."""
    tokens = len(shards.tokens)
    if not tokens or not shards.manifest.has_words:
        return 0.0
    if tokens <= RUNS * RUN:
        flags = shards.words.take(np.arange(tokens))
    else:
        flags = shards.words.window(np.linspace(0, tokens - RUN, RUNS).astype(np.int64), RUN)
    words = int(flags.sum())
    return flags.size / words if words else math.inf
