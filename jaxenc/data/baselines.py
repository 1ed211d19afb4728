"""What counting alone predicts: cross-entropies of the held-out tokens that a trained encoder has to beat."""

import dataclasses

import numpy as np

from jaxenc.data.store import Shards, open_split
from jaxenc.errors import UserError

TRAIN_TOKENS = 20_000_000
FIT_TOKENS = 200_000
HELD_OUT_TOKENS = 1_000_000
EM_STEPS = 30
ADD = 0.1
_BUCKETS = 24


@dataclasses.dataclass(frozen=True)
class Table:
    """How often each key occurs: two arrays, keys int64 sorted, counts int64."""

    keys: np.ndarray
    counts: np.ndarray

    def at(self, keys: np.ndarray) -> np.ndarray:
        """Counts of `keys`, 0 where unseen."""
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)


def count_baselines(path: str) -> dict[str, float]:
    """Cross-entropy in nats a token of the held-out split, predicted from the training split of a data folder.

    unigram: counts + ADD, over the vocabulary. left: a mixture of the unigram and of the frequencies behind the token on the left.
    left_right: a mixture of those two, of the frequencies in front of the token on the right, and of those between both neighbours.
    Mixture weights depend on how often the context was seen (in powers of two) and are fitted by EM on training tokens that are not
    counted. At most TRAIN_TOKENS training and HELD_OUT_TOKENS held-out tokens are used, from the front. Context crosses documents.
    Raises UserError when either split is too short to count.
    """
    train, held_out = open_split(path, "train"), open_split(path, "held_out")
    size = train.manifest.tokenizer.size
    tokens, test = _front(train, TRAIN_TOKENS + FIT_TOKENS), _front(held_out, HELD_OUT_TOKENS)
    fit_tokens = min(FIT_TOKENS, len(tokens) // 10)
    if fit_tokens < 3 or len(test) < 3:
        raise UserError(f"{path}: count baselines need 30 training tokens and 3 held-out ones; build with more text or a higher --held-out")
    counted, fit = tokens[:-fit_tokens], tokens[-fit_tokens:]
    unigram = (np.bincount(counted, minlength=size) + ADD) / (len(counted) + ADD * size)
    models = _Models(counted, size, unigram)
    out = {"unigram": float(-np.log(unigram[test]).mean())}
    for name, contexts in (("left", ("left",)), ("left_right", ("left", "right", "both"))):
        weights = _fitted(*models.experts(fit, contexts))
        probabilities, buckets = models.experts(test, contexts)
        out[name] = float(-np.log((weights[buckets] * probabilities).sum(1)).mean())
    return out


def _front(shards: Shards, limit: int) -> np.ndarray:
    return shards.tokens.take(np.arange(min(limit, len(shards.tokens))))


class _Models:
    """Frequencies of a token given its neighbours, one sparse table an event and one a context."""

    def __init__(self, tokens: np.ndarray, size: int, unigram: np.ndarray):
        self._size, self._unigram = size, unigram
        self._tables = {name: tuple(_count(keys) for keys in self._keys(tokens, name)) for name in ("left", "right", "both")}

    def _keys(self, tokens: np.ndarray, context: str) -> tuple[np.ndarray, np.ndarray]:
        """(event, context) keys of the tokens that have both neighbours: vocabularies up to 2^21 ids fit 63 bits."""
        before, middle, after = tokens[:-2], tokens[1:-1], tokens[2:]
        around = {"left": before, "right": after, "both": before * self._size + after}[context]
        return around * self._size + middle, around

    def experts(self, tokens: np.ndarray, contexts: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """(probability [n, 1 + contexts] of each inner token by the unigram and by each context, bucket [n] of the last context's
        and the first context's counts)."""
        columns, bucket = [self._unigram[tokens[1:-1]]], np.zeros(len(tokens) - 2, np.int64)
        for context in contexts:
            event, around = self._keys(tokens, context)
            events, seen = (table.at(keys) for table, keys in zip(self._tables[context], (event, around)))
            columns.append(events / np.maximum(seen, 1))
            bucket = bucket * _BUCKETS + np.minimum(np.log2(seen + 1).astype(np.int64), _BUCKETS - 1)
        return np.stack(columns, 1), bucket


def _count(keys: np.ndarray) -> Table:
    return Table(*np.unique(keys, return_counts=True))


def _fitted(probabilities: np.ndarray, buckets: np.ndarray) -> np.ndarray:
    raise NotImplementedError
