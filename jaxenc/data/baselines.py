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


@dataclasses.dataclass(frozen=True)
class Table:
    """How often each key occurs: keys int64, sorted; counts int64."""

    keys: np.ndarray
    counts: np.ndarray

    def at(self, keys: np.ndarray) -> np.ndarray:
        """Counts of `keys`, 0 where unseen."""
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)


def count_baselines(path: str) -> dict[str, float]:
    """Cross-entropy in nats a token of the held-out split, predicted from the training split of a data folder.

    unigram: counts + ADD. left: a mixture of the unigram and of the frequencies behind the token on the left. left_right: a mixture of
    those two and of the frequencies in front of the token on the right. The weights of a mixture are numbers fitted by EM on training
    tokens that are not counted: a tenth of those used, FIT_TOKENS at most. From the front of each split TRAIN_TOKENS and
    HELD_OUT_TOKENS are used at most, which bounds the memory (0.8 GB measured); neighbours may belong to another document.
    Raises UserError when a split is too short.
    """
    train, held_out = open_split(path, "train"), open_split(path, "held_out")
    size = train.manifest.tokenizer.size
    tokens, test = _front(train, TRAIN_TOKENS), _front(held_out, HELD_OUT_TOKENS)
    fitted = min(FIT_TOKENS, len(tokens) // 10)
    if fitted < 3 or len(test) < 3:
        raise UserError(f"{path}: count baselines need 30 training and 3 held-out tokens; build with more text or a higher --held-out")
    counted, fit = tokens[:-fitted], tokens[-fitted:]
    unigram = (np.bincount(counted, minlength=size) + ADD) / (len(counted) + ADD * size)
    tables = [_count(counted[:-1], counted[1:], size), _count(counted[1:], counted[:-1], size)]
    totals = np.bincount(counted, minlength=size)

    def experts(stream: np.ndarray) -> np.ndarray:
        """[n - 2, 3]: the probability of each inner token by the unigram, by its left and by its right neighbour."""
        middle = stream[1:-1]
        columns = [unigram[middle]]
        for table, around in zip(tables, (stream[:-2], stream[2:]), strict=True):
            columns.append(table.at(around * size + middle) / np.maximum(totals[around], 1))
        return np.stack(columns, 1)

    known, asked = experts(fit), experts(test)
    out = {"unigram": float(-np.log(unigram[test]).mean())}
    for name, columns in (("left", 2), ("left_right", 3)):
        out[name] = float(-np.log(asked[:, :columns] @ _weights(known[:, :columns])).mean())
    return out


def _front(shards: Shards, limit: int) -> np.ndarray:
    return shards.tokens.take(np.arange(min(limit, len(shards.tokens))))


def _count(around: np.ndarray, middle: np.ndarray, size: int) -> Table:
    return Table(*np.unique(around * size + middle, return_counts=True))


def _weights(probabilities: np.ndarray) -> np.ndarray:
    """Mixture weights of the columns (experts) that maximise the likelihood of the rows (tokens): EM from equal weights."""
    weights = np.full(probabilities.shape[1], 1 / probabilities.shape[1])
    for _ in range(EM_STEPS):
        shares = weights * probabilities
        weights = (shares / shares.sum(1, keepdims=True)).mean(0)
    return weights
